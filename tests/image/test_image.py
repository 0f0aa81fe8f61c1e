"""The daemon's image: what its Containerfile may hold, and that the wheel which it installs is all that it needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests import bare_environment

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "image" / "Containerfile"
EPOCH = "1700000000"


def instructions() -> list[tuple[str, str]]:
    """Instruction and arguments, in order."""
    lines = [line for line in CONTAINERFILE.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def of_kind(kind: str) -> list[str]:
    return [rest for word, rest in instructions() if word == kind]


def final_stage() -> list[tuple[str, str]]:
    found = instructions()
    last = max(index for index, (word, _) in enumerate(found) if word == "FROM")
    return found[last:]


def requirements(path: Path) -> dict[str, str]:
    """Versions by package."""
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", path.read_text(), re.MULTILINE))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheel, built twice."""
    found: list[Path] = []
    for number in range(2):
        directory = tmp_path_factory.mktemp(f"build-{number}")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
        subprocess.run([ROOT / "tools" / "wheels", directory], check=True, env=environment, timeout=120)
        found += directory.glob("cloud_controller-*.whl")
    return found


@pytest.fixture(scope="module")
def app(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image has in /app: the wheel, and of this environment's packages those that the image has."""
    directory = tmp_path_factory.mktemp("app")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(directory)
    for package in requirements(ROOT / "image" / "requirements.txt"):
        bare_environment.link(distribution(package), directory)
    return directory


def run(app: Path, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Python as the image starts it, with nothing else to import."""
    environment = {"PYTHONPATH": str(app), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.defpath}
    command = [sys.executable, "-S", "-P", *arguments]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


# ----------------------------------------------------------------------------------------------------- Containerfile


@pytest.mark.integration
def test_the_linter_has_nothing_to_say() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"

    found = subprocess.run([hadolint, "--format=json", CONTAINERFILE], capture_output=True, text=True, check=False)

    assert json.loads(found.stdout) == []


def test_both_stages_have_one_base_which_is_slim_and_named_without_a_registry() -> None:
    (base,) = of_kind("ARG")

    assert {rest.split()[0] for rest in of_kind("FROM")} == {"${PYTHON_IMAGE}"}
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+-slim", base)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of the script that builds the image, with a builder that says what it is asked for."""
    for name, text in {
        "tools/image": (ROOT / "tools" / "image").read_text(),
        "tools/wheels": "#!/bin/sh\n",
        "bin/podman": '#!/bin/sh\necho "$@"\n',
    }.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    return tmp_path


def build(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [checkout / "tools" / "image", *arguments]
    path = f"{checkout / 'bin'}:{os.defpath}"
    variables = {"PATH": path, "SOURCE_DATE_EPOCH": EPOCH, **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.integration
@pytest.mark.parametrize(
    "base",
    [
        "",
        "python:3.13-slim",
        f"python@sha256:{'0' * 64}",
        f"python:3.13-slim@sha256:{'0' * 63}",
        f"python:3.13-slim@sha512:{'0' * 64}",
        "python:3.13-slim@",
        f"python:3.13-slim\nx:1@sha256:{'0' * 64}",
    ],
)
def test_a_release_whose_base_has_no_tag_or_no_digest_is_refused(checkout: Path, base: str) -> None:
    done = build(checkout, RELEASE="1", PYTHON_IMAGE=base)

    assert (done.returncode, done.stdout) == (2, "")
    assert "a release needs a base by tag and digest" in done.stderr


@pytest.mark.integration
def test_a_release_is_built_from_the_base_that_it_names_and_saved(checkout: Path) -> None:
    base = f"registry.example:5000/python:3.13-slim@sha256:{'0' * 64}"

    done = build(checkout, "image.tar", RELEASE="1", PYTHON_IMAGE=base)

    built, saved = done.stdout.splitlines()
    assert f"--build-arg PYTHON_IMAGE={base} " in built and saved == "save --output image.tar cloud-controller"


@pytest.mark.integration
def test_a_build_by_hand_has_the_base_of_the_containerfile(checkout: Path) -> None:
    done = build(checkout)

    assert done.stdout.splitlines() == ["build --file image/Containerfile --tag cloud-controller ."]


def test_it_runs_as_a_user_by_number_who_is_not_root() -> None:
    (user,) = (rest for word, rest in final_stage() if word == "USER")

    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)


def test_it_is_the_user_whom_the_manifests_name() -> None:
    program = (ROOT / "cloud_controller" / "manifests.py").read_text()
    (user,) = of_kind("USER")

    assert f"NOBODY = {user.partition(':')[0]}" in program


@pytest.mark.parametrize("kind", ["RUN", "ENTRYPOINT", "CMD"])
def test_no_shell_is_asked_for_anything(kind: str) -> None:
    for rest in of_kind(kind):
        assert json.loads(rest)[0] in ("python", "--help")


def test_the_final_stage_takes_from_the_build_stage_alone_and_installs_nothing() -> None:
    kinds = [word for word, _ in final_stage()]

    assert "RUN" not in kinds
    assert "ADD" not in [word for word, _ in instructions()]
    assert [rest for word, rest in final_stage() if word == "COPY"] == ["--from=build /app /app"]


def test_everything_that_is_installed_is_checked_by_its_hash() -> None:
    for rest in of_kind("RUN"):
        assert "--require-hashes" in json.loads(rest)


def test_nothing_is_written_at_run_time() -> None:
    (variables,) = of_kind("ENV")

    assert "PYTHONDONTWRITEBYTECODE=1" in variables
    assert not of_kind("VOLUME")


# ------------------------------------------------------------------------------------------------------ what it holds


def test_its_packages_are_those_of_the_tests_in_the_same_versions() -> None:
    everything = requirements(ROOT / "requirements.txt")

    assert requirements(ROOT / "image" / "requirements.txt").items() <= everything.items()


def test_nothing_of_the_program_is_in_it() -> None:
    packages = requirements(ROOT / "image" / "requirements.txt")

    assert "urllib3" in packages
    assert not {"pulumi", "grpcio", "protobuf", "pydantic", "fastapi"} & packages.keys()


@pytest.mark.integration
def test_the_wheel_is_the_same_bytes_each_time(wheels: list[Path]) -> None:
    first, second = wheels

    assert first.read_bytes() == second.read_bytes()
    name, _, digest = (first.parent / "wheel.txt").read_text().partition(" --hash=sha256:")
    assert (name, len(digest.strip())) == ("cloud-controller==0.1.0", 64)


@pytest.mark.integration
def test_the_wheel_holds_the_dashboard(app: Path) -> None:
    stored = Path("cloud_controller", "monitoring", "dashboard.json")

    assert (app / stored).read_bytes() == (ROOT / stored).read_bytes()


def test_the_wheel_holds_the_controllers_alone(wheels: list[Path]) -> None:
    with zipfile.ZipFile(wheels[0]) as wheel:
        tops = {name.split("/")[0] for name in wheel.namelist()}

    assert tops == {"cloud_controller", "cloud_controller-0.1.0.dist-info"}


# -------------------------------------------------------------------------------------------------------- that it runs


@pytest.mark.integration
def test_the_command_runs_with_the_images_packages_alone(app: Path, tmp_path: Path) -> None:
    (entrypoint,) = of_kind("ENTRYPOINT")
    _, *arguments = json.loads(entrypoint)

    found = run(app, *arguments, "version", cwd=tmp_path)

    assert (found.stdout, found.stderr) == ("0.1.0\n", "")


@pytest.mark.integration
def test_every_module_can_be_imported_with_the_images_packages_alone(app: Path) -> None:
    modules = sorted(
        ".".join(path.relative_to(app).with_suffix("").parts)
        for path in (app / "cloud_controller").rglob("*.py")
        if path.name != "__init__.py"
    )

    found = run(app, "-c", "".join(f"import {module}\n" for module in modules))

    assert (found.returncode, found.stderr) == (0, "")
    assert "No module named 'pulumi'" in run(app, "-c", "import pulumi").stderr


@pytest.mark.integration
def test_its_cloud_is_found_by_name(app: Path, tmp_path: Path) -> None:
    (tmp_path / "cloud.conf").write_text("[Global]\n")
    arguments = ["-m", "cloud_controller.cli", "plan", "--cloud=mycloud", "--controllers=node"]
    arguments.append("--cloud-config=cloud.conf")

    found = run(app, *arguments, cwd=tmp_path)

    assert found.stderr == "cloud-controller: cloud config: [Global] endpoint: missing\n"


def test_the_context_is_what_the_containerfile_copies() -> None:
    kept = {line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")}

    assert kept == {"image/requirements.txt", "dist/cloud_controller-*.whl", "dist/wheel.txt"}
    copied = [rest.split()[0] for rest in of_kind("COPY") if not rest.startswith("--from")]
    assert copied == ["image/requirements.txt", "dist/"]

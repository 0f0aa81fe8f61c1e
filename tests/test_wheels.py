"""Every wheel in an environment of its own: with what it declares, and nothing else."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable
from configparser import ConfigParser
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests import bare_environment
from tests.bare_environment import closure
from tests.example_program import built_wheels

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

EXTRAS = {
    "cloud-controller": "aws",
    "cloud-controller-stacks": "pytest",
    "pulumi-cloud-controller": "alicloud,aws,openstack",
}
"""Of each wheel, those for its own modules."""
IMPORT_ALL = """
import importlib, json, sys
missing = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing[name] = error.name.partition(".")[0]
print(json.dumps(missing))
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheels(tmp_path_factory)


@pytest.fixture(scope="module")
def environment(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The Python of an environment with a requirement."""
    return cache(lambda wanted: bare_environment.make(tmp_path_factory.mktemp("bare") / "venv", dist, wanted))


def contents(dist: Path, name: str) -> zipfile.ZipFile:
    [wheel] = dist.glob(f"{name.replace('-', '_')}-*.whl")
    return zipfile.ZipFile(wheel)


def imported(python: Path, wheel: zipfile.ZipFile) -> dict[str, str]:
    """The modules that cannot be imported, each with the one that it lacks. `__main__` would run."""
    files = [Path(name).with_suffix("") for name in wheel.namelist() if name.endswith(".py")]
    ours = [file for file in files if file.name != "__main__" and "template" not in file.parts]
    modules = [".".join(file.parts).removesuffix(".__init__") for file in ours]
    done = subprocess.run(
        [python, "-P", "-c", IMPORT_ALL, *modules], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", EXTRAS)
def test_with_its_extras_every_module_of_a_wheel_can_be_imported(
    dist: Path, environment: Callable[[str], Path], name: str
) -> None:
    python = environment(f"{name}[{EXTRAS[name]}]")

    assert imported(python, contents(dist, name)) == {}


@pytest.mark.parametrize("name", EXTRAS)
def test_without_extras_only_what_an_extra_brings_is_missing_and_its_commands_run(
    dist: Path, environment: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    python = environment(name)
    brought = closure(dist, f"{name}[{EXTRAS[name]}]") - closure(dist, name)

    lacking = imported(python, contents(dist, name))

    assert {module: lacks for module, lacks in lacking.items() if not provided_by(lacks) & brought} == {}
    for command in commands(python, contents(dist, name)):
        # Not here, where the checkout's own modules come first.
        subprocess.run([*command, "--help"], check=True, capture_output=True, cwd=tmp_path, timeout=280)


def test_a_cloud_whose_sdk_is_not_installed_is_refused_with_what_to_install(
    environment: Callable[[str], Path], tmp_path: Path
) -> None:
    python = environment("cloud-controller")
    (tmp_path / "cloud.conf").write_text("[Global]\nKubernetesClusterID = c-1\n")

    command = str(python.parent / "cloud-controller")
    plan = [command, "plan", "--cloud", "aws", "--cloud-config", str(tmp_path / "cloud.conf")]
    done = subprocess.run(plan, capture_output=True, text=True, timeout=280, check=False)

    assert done.stderr == "cloud-controller: cloud: aws needs boto3: pip install 'cloud-controller[aws]'\n"


def provided_by(module: str) -> set[str]:
    return {*map(canonicalize_name, packages_distributions().get(module, []))}


def commands(python: Path, wheel: zipfile.ZipFile) -> list[list[str]]:
    """Its console scripts, and the modules that `python -m` runs; a policy pack's is a server."""
    [points] = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    parser = ConfigParser()
    parser.read_string(wheel.read(points).decode())
    scripts = parser["console_scripts"] if parser.has_section("console_scripts") else ()
    packages = [name.removesuffix("/__main__.py") for name in wheel.namelist() if name.endswith("/__main__.py")]
    modules = [each.replace("/", ".") for each in packages if "template" not in each and not each.endswith("/policy")]
    return [*([str(python.parent / each)] for each in scripts), *([str(python), "-m", each] for each in modules)]

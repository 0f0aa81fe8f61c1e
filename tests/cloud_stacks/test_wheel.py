"""`cloud-stacks` in a user's own repository, with nothing but the wheels and what they declare."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import bare_environment
from tests.example_program import EXAMPLE, ROOT, built_wheels
from tests.pulumi_cli import path_with_cli

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

TEMPLATE = ROOT / "cloud_stacks" / "template"
STACK = """\
encryptionsalt: v1:of-the-user
config:
  load-balancer-service:kubeconfig:
    secure: v1:which-nobody-here-can-decrypt
"""

TWIN = """
kubernetes.core.v1.Service(
    "twin",
    metadata={"name": "shop", "namespace": "default"},
    spec={"type": "LoadBalancer", "ports": [{"port": 443}]},
    opts=pulumi.ResourceOptions(provider=cluster),
)
"""
"""Makes the Service of the template a second time, and for everybody."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with what the template requires; as those of a repository, in a folder `.venv`."""
    required = (TEMPLATE / "requirements.txt").read_text().splitlines()
    wanted = [line for line in required if line and not line.startswith(("#", "--"))]
    folder = tmp_path_factory.mktemp("library") / ".venv"
    bare_environment.make(folder, built_wheels(tmp_path_factory), *wanted)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The example in a subfolder of a repository, beside folders with the names of our packages."""
    folder = tmp_path / "repository" / "infrastructure"
    shutil.copytree(EXAMPLE, folder)
    (folder / "Pulumi.dev.yaml").write_text(STACK)
    for name in ("local", "policy", "components"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise ImportError('this is the user\\'s')\n")
    git(folder.parent, "init", "--quiet", "--initial-branch", "main")
    git(folder.parent, "add", "--all")
    git(folder.parent, "commit", "--quiet", "--message", "base")
    return folder


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def cloud_stacks(library: Path, project: Path, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [library / "bin" / "cloud-stacks", *arguments],
        cwd=project,
        env={**os.environ, "PATH": path or path_with_cli(library.parent)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_a_users_change_is_compared_with_its_base(library: Path, project: Path) -> None:
    program = project / "__main__.py"
    internal = '"annotations": {"service.beta.kubernetes.io/dlb-scheme": "internal"}, "ports":'
    program.write_text(program.read_text().replace('"ports":', internal))

    done = cloud_stacks(library, project, "diff", "--base", "main", "--json", "--out", "report")

    assert done.returncode == 0, done.stderr
    [stack] = json.loads(done.stdout)["stacks"]
    effects = [effect for change in stack["changes"] for effect in change["effects"]]
    assert [effect["kind"] for effect in effects] == ["address replaced"]
    [result] = json.loads((project / "report" / "report.sarif").read_text())["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "infrastructure/__main__.py"
    # Our pack runs where the user has none.
    assert [finding["policy"] for finding in stack["gone"]] == ["lb-service-limit-sources"]


def test_a_stack_is_planned_without_its_secrets_and_without_a_cluster(library: Path, project: Path) -> None:
    done = cloud_stacks(library, project, "preview", "--stack", "dev", "--json")

    assert done.returncode == 0, done.stderr
    [stack] = json.loads(done.stdout)["stacks"]
    assert {change["op"] for change in stack["changes"]} == {"create"} and stack["problems"] == []
    assert {(change["type"], change["name"]) for change in stack["changes"]} == {
        ("pulumi:pulumi:Stack", "load-balancer-service-dev"),
        ("pulumi:providers:kubernetes", "cluster"),
        ("cloudcontroller:index:LoadBalancerService", "shop"),
        ("kubernetes:core/v1:Service", "shop"),
    }


def test_without_pulumis_cli_a_line_says_what_to_install(library: Path, project: Path) -> None:
    done = cloud_stacks(library, project, "preview", path=os.defpath)

    assert done.returncode == 2
    assert done.stderr == (
        "error: Pulumi's CLI, version 3.226 or newer, is not on PATH: install it by "
        "https://www.pulumi.com/docs/install/\n"
    )


def test_every_module_of_the_command_is_in_the_wheel(library: Path) -> None:
    def modules(folder: Path) -> set[str]:
        return {str(path.relative_to(folder)) for path in folder.rglob("*.py")}

    ours = modules(ROOT / "cloud_stacks") | {
        f"{package}/{each}"
        for package, folder in {"local/plugins": ROOT / "local" / "plugins", "policy": ROOT / "policy"}.items()
        for each in modules(folder)
    }
    [installed] = library.glob("lib/python*/site-packages/cloud_stacks")
    assert ours <= modules(installed)


def test_a_new_repository_passes_its_own_checks(library: Path, tmp_path: Path) -> None:
    made = cloud_stacks(library, tmp_path, "new", "shop")
    folder = tmp_path / "shop"
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "new")
    (folder / ".venv").symlink_to(library)

    # What its page tells people to run, but for the installation and Pulumi's CLI.
    lines = (folder / "README.md").read_text().splitlines()
    told = [shlex.split(line, comments=True) for line in lines if line.startswith("    .venv/bin/")]
    environment = {**os.environ, "PATH": path_with_cli(library.parent)}
    done = [
        subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=280, check=False)
        for words in told
    ]
    with (folder / "__main__.py").open("a") as program:
        program.write(TWIN)
    diff = cloud_stacks(library, folder, "diff", "--base", "main", "--json")

    assert made.returncode == 0 and ".github/workflows/pull-request.yml" in made.stdout.splitlines(), made.stderr
    assert [words[0] for words in told] == [".venv/bin/cloud-stacks", ".venv/bin/cloud-stacks", ".venv/bin/python"]
    assert [each.returncode for each in done] == [0, 0, 0], [each.stdout + each.stderr for each in done]
    # Its own pack and its own levels judge it.
    assert diff.returncode == 1, diff.stderr
    [stack] = json.loads(diff.stdout)["stacks"]
    assert sorted((each["policy"], each["level"]) for each in stack["findings"]) == [
        ("lb-service-have-one-owner", "mandatory"),
        ("lb-service-limit-sources", "advisory"),
    ]
    assert not any("NAME" in (folder / name).read_text() for name in made.stdout.splitlines())


def test_a_folder_with_something_in_it_is_left_alone(library: Path, project: Path) -> None:
    done = cloud_stacks(library, project, "new", ".")

    assert done.returncode == 2 and "is not empty" in done.stderr

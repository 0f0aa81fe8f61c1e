"""docs/support.md says what the files say."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from cloud_controller import clouds
from cloud_controller.controller_names import NAMES
from components import clouds as components_clouds

ROOT = Path(__file__).parents[2]


def rows(heading: str) -> dict[str, list[str]]:
    """The cells of a section's table, by the first one."""
    section = (ROOT / "docs" / "support.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


def found(file: str, pattern: str) -> str:
    match = re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)
    assert match, f"{pattern} in {file}"
    return match[1]


def test_the_kubernetes_that_tests_run_is_the_one_that_is_built() -> None:
    assert rows("Versions")["Kubernetes"][0] == found("tools/go.mod", r"k8s\.io/kubernetes v(\S+)")


def test_python_is_the_version_that_the_project_requires_and_the_image_has() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    table = rows("Versions")

    run, allowed, _ = table["Python, for the command, the components and the tests"]
    assert allowed == project["requires-python"]
    # The oldest one is what `mypy` and `ruff` hold the code to; whoever runs the tests may have a newer one.
    assert tuple(map(int, run.split("."))) <= sys.version_info[:2]
    assert table["Python, in the image"][1] == found("image/Containerfile", r"^ARG PYTHON_IMAGE=python:([\d.]+)-slim$")


@pytest.mark.parametrize(
    "package", ["pulumi", "pulumi-kubernetes", "pulumi-aws", "pulumi-alicloud", "pulumi-policy", "boto3"]
)
def test_a_packages_version_is_the_locked_one_within_the_allowed_ones(package: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = {re.split(r"[<>=\[]", each)[0]: each for extra in extras.values() for each in extra}
    (row,) = [cells for first, cells in rows("Versions").items() if first == package or f"`{package}`" in first]

    assert row[0].partition(",")[0] == found("requirements.txt", rf"^{package}==(\S+)")
    assert f"{package}{row[1]}" == wanted[package]


def test_a_clouds_row_lists_the_controllers_that_it_offers() -> None:
    table = rows("Clouds")

    assert {first.strip("`") for first in table} == {*clouds.names()}
    for name in clouds.names():
        offered = [each for each in NAMES if each not in clouds.descriptor(name).not_offered]
        listed, by_program, _ = table[f"`{name}`"]
        assert listed.replace("`", "").split(", ") == offered
        assert (by_program == "yes") == (name in components_clouds.names())

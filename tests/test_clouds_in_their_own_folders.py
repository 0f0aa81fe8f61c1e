"""A cloud is added by its own folders: no other module names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cloud_controller import clouds

ROOT = Path(__file__).parents[1]
PACKAGES = ("cloud_controller", "cloud_stacks", "components", "policy", "local")
# What people also call the clouds that have descriptors.
NAMES = (*clouds.names(), "amazon", "ec2", "eks")
LETTERS = re.compile("|".join(NAMES))
"""Of any name, in whatever word: where there are none, the slower expression finds nothing."""
NAMED = re.compile(rf"(?<![a-z])({'|'.join(NAMES)})(?![a-z])", re.IGNORECASE)


def of_no_cloud(package: str) -> list[Path]:
    modules = sorted((ROOT / package).rglob("*.py"))
    return [path for path in modules if not {*clouds.names()} & {*path.relative_to(ROOT).parts}]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_outside_the_folders_of_a_cloud_names_one(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in of_no_cloud(package)
        if LETTERS.search(path.read_text().lower())
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if NAMED.search(line)
    ]

    assert found == []


@pytest.mark.parametrize("name", clouds.names())
def test_the_folders_of_a_cloud_import_no_other_cloud(name: str) -> None:
    others = "|".join(each for each in clouds.names() if each != name)
    imported = re.compile(rf"^\s*(from|import) .*\.({others})\b", re.MULTILINE)

    found = [
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if name in path.relative_to(ROOT).parts and imported.search(path.read_text())
    ]

    assert found == []

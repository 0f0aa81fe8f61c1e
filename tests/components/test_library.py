"""The components as a library: what the wheels hold, and that they find their clouds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from components import clouds
from tests.example_program import ROOT, unpacked_wheels

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked_wheels(tmp_path_factory)


def test_the_wheels_hold_only_the_controllers_the_components_and_the_command(library: Path) -> None:
    packages = {path.name for path in library.iterdir() if not path.name.endswith(".dist-info")}

    assert packages == {"cloud_controller", "cloud_stacks", "pulumi_cloud_controller"}


def test_every_module_of_the_components_is_in_the_wheel(library: Path) -> None:
    def modules(folder: Path) -> set[str]:
        return {str(path.relative_to(folder)) for path in folder.rglob("*.py")}

    assert modules(library / "pulumi_cloud_controller") == modules(ROOT / "components")


def test_the_components_wheel_requires_the_controllers_wheel_of_its_own_version(library: Path) -> None:
    def metadata(package: str) -> str:
        [folder] = library.glob(f"{package}-*.dist-info")
        return (folder / "METADATA").read_text()

    [version] = [line.split()[1] for line in metadata("cloud_controller").splitlines() if line.startswith("Version:")]
    assert f"Requires-Dist: cloud-controller[components]=={version}\n" in metadata("pulumi_cloud_controller")
    assert f"\nVersion: {version}\n" in metadata("pulumi_cloud_controller")


@pytest.mark.parametrize("package", ["cloud_controller", "cloud_controller_stacks", "pulumi_cloud_controller"])
def test_each_wheel_names_its_licence_and_has_the_text(library: Path, package: str) -> None:
    [folder] = library.glob(f"{package}-*.dist-info")

    assert "\nLicense-Expression: Apache-2.0\n" in (folder / "METADATA").read_text()
    assert (folder / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_library_finds_the_clouds_of_its_own_package(library: Path) -> None:
    program = (
        "from pulumi_cloud_controller import clouds; print(*(f'{c.name} {type(c)}' for c in clouds.descriptors()))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(library)},
        cwd=library,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    kind = "<class 'pulumi_cloud_controller.clouds.interface.ComponentsCloud'>"
    assert done.stdout.strip() == " ".join(f"{name} {kind}" for name in clouds.names())

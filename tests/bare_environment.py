"""Environments with some of our wheels and what those declare, and nothing else of this environment.

What they declare is linked from here, in the locked versions: neither a network nor an installer's choice matters.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BIN = Path(sys.executable).parent


def make(folder: Path, wheels: Path, *wanted: str) -> Path:
    """The Python of a new environment with these requirements, which may be of `wheels`. Raises as `closure`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=280)
    python = folder / "bin" / "python"
    [site] = folder.glob("lib/python*/site-packages")
    ours = _of_wheels(wheels)
    needed = closure(wheels, *wanted)
    for name in needed - ours.keys():
        link(distribution(name), site)
    install: list[str | Path] = [
        BIN / "uv",
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-config",
        "--no-deps",
        "--python",
        python,
    ]
    subprocess.run([*install, *(ours[name] for name in needed & ours.keys())], check=True, timeout=280)
    return python


def closure(wheels: Path, *wanted: str) -> set[str]:
    """The names of all that these requirements come to.

    Raises ValueError if one does not allow the version that is here, PackageNotFoundError if there is none.
    """
    ours = _of_wheels(wheels)
    seen: dict[str, set[str]] = {}
    waiting = [Requirement(each) for each in wanted]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        found = _metadata(ours[name]) if name in ours else distribution(name)
        if not requirement.specifier.contains(found.version):
            raise ValueError(f"{requirement}: the version here is {found.version}")
        new = {"", *requirement.extras} - seen.setdefault(name, set())
        seen[name] |= new
        needed = map(Requirement, found.requires or ())
        waiting += [r for r in needed if not r.marker or any(r.marker.evaluate({"extra": each}) for each in new)]
    return {*seen}


def link(found: Distribution, site: Path) -> None:
    """Link an installed package into another site-packages: its packages, and the files outside of them."""
    files = [Path(file) for file in found.files or () if not {"..", "__pycache__"} & {*file.parts}]
    packages = {file.parent for file in files if file.name == "__init__.py"}
    # Folders like `google` are none, and several packages have parts of them.
    for each in {
        next((above for above in reversed((file, *file.parents)) if above in packages), file) for file in files
    }:
        (site / each).parent.mkdir(parents=True, exist_ok=True)
        (site / each).symlink_to(str(found.locate_file(each)))


def _of_wheels(folder: Path) -> dict[str, Path]:
    return {canonicalize_name(wheel.name.partition("-")[0]): wheel for wheel in folder.glob("*.whl")}


def _metadata(wheel: Path) -> Distribution:
    name, version, *_ = wheel.name.split("-")
    return PathDistribution(zipfile.Path(wheel, f"{name}-{version}.dist-info/"))

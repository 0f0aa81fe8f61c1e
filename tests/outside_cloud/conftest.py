"""Installs tinycloud for one test, as pip would: its code and its entry points, and nothing else."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _tinycloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    info = tmp_path / "site" / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    text = "".join(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups)
    (info / "entry_points.txt").write_text(text)
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.syspath_prepend(str(info.parent))
    yield
    for name in [each for each in sys.modules if each.partition(".")[0] == "tinycloud"]:
        del sys.modules[name]

"""Which CLI is used: the one on PATH with its own language host, else the one that is built."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from local.pulumi import builds
from local.pulumi.language_host import EXECUTOR
from local.pulumi.toolchain import find
from tests.local.pulumi.test_language_host import Sample

LANGUAGE_HOST = "pulumi-language-python"


def script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("version", "host", "wrong"),
    [
        ("v3.226.0", True, ""),
        ("v3.225.9", True, "is older than 3.226"),
        ("v3.300.1", False, "has no pulumi-language-python"),
        ("none", True, "does not say its version"),
    ],
)
def test_the_cli_on_path_is_used_if_it_can_run_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, host: bool, wrong: str
) -> None:
    script(tmp_path / "pulumi", f"echo {version}")
    if host:
        script(tmp_path / LANGUAGE_HOST, "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(builds, "cli", lambda _: Path("/cache/pulumi"))
    reported: list[str] = []

    found = find(reported.append)

    assert reported == ([f"{tmp_path}/pulumi {wrong}: not used"] if wrong else [])
    assert found.is_official is (wrong == "")
    assert found.pulumi == (Path("/cache/pulumi") if wrong else tmp_path / "pulumi")


@pytest.mark.cli
def test_a_program_is_run_by_the_language_host_of_the_cli_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours stands in for the official one, which only its download has."""
    parts, official = find(print).pulumi.resolve().parent, tmp_path / "official"
    official.mkdir()
    for name in ("pulumi", EXECUTOR, "pulumi-resource-pulumi-python"):
        (official / name).symlink_to(parts / name)
    ours = f'exec {sys.executable} -I -m local.pulumi.language_host "$@"'
    script(official / LANGUAGE_HOST, f"touch {tmp_path}/called\n{ours}")
    monkeypatch.setenv("PATH", f"{official}{os.pathsep}/usr/bin{os.pathsep}/bin")
    sample = Sample(tmp_path)
    sample.configure(size="small")

    assert "the program prints" in sample.run("preview")
    assert sample.cli.tools.is_official
    assert (tmp_path / "called").exists()

"""A Go tool is built once per machine and pin, from its own module."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from local.control_plane.prometheus import promtool
from local.errors import BuildError, Report
from local.go import tool
from local.go.tool import GoTool

LINT = GoTool(folder="lint", module="example.com/lint", package="example.com/lint/cmd/lint", takes="seconds")


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The tool's module, and no compiler needed: a build writes its package and version."""
    folder = tmp_path / "tools" / "lint"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text("module a\n\nrequire (\n\texample.com/lint v1.2.3 // indirect\n)\n")
    (folder / "go.sum").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tool, "TOOLS", tmp_path / "tools")
    monkeypatch.setattr(tool, "find_go", lambda *_: Path("go"))
    monkeypatch.setattr(tool, "build", build)
    return folder


def build(_: Path, name: str, version: str, folder: Path, target: Path, __: Report, **options: str) -> None:
    package, tags = options["package"], options["tags"]
    target.write_text(f"{name} {version} of {package} in {folder.name}{tags and f' with {tags}'}")


def test_a_tool_is_built_once_and_the_wait_is_announced() -> None:
    reported: list[str] = []

    first = LINT.binary(reported.append)
    second = LINT.binary(pytest.fail)

    assert first == second
    assert first.read_text() == "lint v1.2.3 of example.com/lint/cmd/lint in lint"
    assert reported == ["building lint v1.2.3 from Go modules, once per machine (seconds)"]


def test_another_pin_never_meets_the_old_binary(module: Path) -> None:
    before = LINT.binary(lambda _: None)
    (module / "go.mod").write_text("module a\n\nrequire example.com/lint v1.3.0\n")

    after = LINT.binary(lambda _: None)

    assert after != before
    assert "v1.3.0" in after.read_text()


def test_a_binary_with_other_build_tags_is_another_one() -> None:
    plain = LINT.binary(lambda _: None)

    tagged = replace(LINT, tags="small").binary(lambda _: None)

    assert tagged != plain
    assert tagged.read_text() == "lint v1.2.3 of example.com/lint/cmd/lint in lint with small"


def test_a_module_that_is_not_required_is_named() -> None:
    with pytest.raises(BuildError, match=r"lint/go\.mod does not require example\.com/other"):
        LINT.version("example.com/other")


def test_a_promtool_on_path_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed = tmp_path / "promtool"
    installed.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert promtool() == installed

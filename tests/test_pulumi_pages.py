"""Pages with commands of Pulumi's CLI say what these do besides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *(page for folder in ("docs", "examples", "cloud_stacks") for page in (ROOT / folder).rglob("*.md")),
]
WRITES = re.compile(r"pulumi (stack init|stack select --create|(preview|up|refresh|destroy) -)")
"""Commands that write the stack file again."""

WORKFLOWS = [
    *(ROOT / ".github/workflows").glob("*.yml"),
    *(ROOT / "cloud_stacks/template").rglob("*.yml"),
    ROOT / ".gitlab-ci.yml",
]


def pages_with(command: re.Pattern[str]) -> list[str]:
    found = [str(page.relative_to(ROOT)) for page in PAGES if command.search(page.read_text())]
    return [page for page in found if page != "CHANGELOG.md"]


@pytest.mark.parametrize("page", pages_with(WRITES))
def test_a_page_with_a_command_that_writes_the_stack_file_says_so(page: str) -> None:
    text = (ROOT / page).read_text()

    assert "stack-config.md#what-pulumis-cli-writes" in text or "encryptionsalt" in text


def test_pages_and_workflows_with_an_event_log_set_the_variable_that_the_cli_needs_for_it() -> None:
    with_log = [path for path in (*PAGES, *WORKFLOWS) if "--event-log" in path.read_text()]

    assert ROOT / ".github/workflows/drift.yml" in with_log
    assert [path for path in with_log if "PULUMI_DEBUG_COMMANDS" not in path.read_text()] == []

"""Each check of doctor has a runbook, which leads there and to the other pages with commands that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cloud_controller.cli import commands as cli
from cloud_controller.cli import options as cli_options
from cloud_controller.doctor.checks import ALL
from cloud_controller.doctor.findings import Check

DOCS = Path(__file__).parents[3] / "docs"
RUNBOOKS = DOCS / "runbooks"
INDEX = RUNBOOKS / "README.md"
PAGES = sorted(RUNBOOKS.glob("*.md"))
DOCTOR = "cloud-controller doctor "
COMMANDS = [
    (page, line.strip()) for page in PAGES for line in page.read_text().splitlines() if line.strip().startswith(DOCTOR)
]

each_check = pytest.mark.parametrize("check", ALL, ids=lambda check: check.name)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def named(text: str) -> set[str]:
    """The checks that the page names after `--only`, in commands and in prose."""
    return {name for names in re.findall(r"--only ([\w,-]+)", text) for name in names.split(",")}


def links(page: Path) -> list[tuple[Path, str]]:
    """Where the page's links within the repository lead: file and anchor."""
    found = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", page.read_text())
    return [((page.parent / path).resolve() if path else page, anchor) for path, anchor in found]


def anchors(page: Path) -> set[str]:
    """The anchors of the page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@each_check
def test_a_check_has_its_page(check: Check) -> None:
    assert (DOCS / check.page).is_file()


@each_check
def test_the_page_of_a_check_shows_how_to_run_this_check(check: Check) -> None:
    commands = [line for page, line in COMMANDS if page == DOCS / check.page]

    assert check.name in named("\n".join(commands))


@pytest.mark.parametrize("line", sorted({line for _, line in COMMANDS}), ids=lambda line: line[-40:])
def test_doctor_accepts_each_of_its_command_lines(line: str) -> None:
    options = cli_options.parse(*cli._parsers(), shlex.split(line)[1:])

    assert options.cloud == "mycloud"


@each_page
def test_a_page_names_only_checks_that_exist(page: Path) -> None:
    assert named(page.read_text()) <= {check.name for check in ALL}


@each_page
def test_the_index_leads_to_every_page(page: Path) -> None:
    assert page in {INDEX} | {path for path, _ in links(INDEX)}


@each_page
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    lost = [(path.name, anchor) for path, anchor in links(page) if not path.is_file()]
    lost += [(path.name, anchor) for path, anchor in links(page) if anchor and anchor not in anchors(path)]

    assert lost == []


def test_the_page_of_doctor_leads_to_the_index() -> None:
    assert INDEX in {path for path, _ in links(DOCS / "doctor.md")}

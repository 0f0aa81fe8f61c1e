"""Reports in every form: complete, below a comment's limit, and safe from whatever names and messages contain."""

from __future__ import annotations

import json
import os
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from cloud_stacks.cli import write
from cloud_stacks.comparison import Change, Line, StackReport
from cloud_stacks.costs import Cost
from cloud_stacks.effects import Effect, Kind
from cloud_stacks.outcome import Finding, Place, Problem
from cloud_stacks.report import html, junit, markdown, sarif, text
from cloud_stacks.report.page import page
from cloud_stacks.report.words import safe_json
from cloud_stacks.rights import Grant
from tests.cloud_stacks.picture import PICTURE, drawn

OUTSIDE = st.text(alphabet="`|\\<>@#*_[](){}!~&:;-+=$ \n\t\r\x1b\x00\u202e\u2028x", min_size=1, max_size=30)
FEWER = settings(max_examples=25)
"""Each renders many documents."""
EVIL = "::set-output name=a::b"


def of(outside: str) -> list[StackReport]:
    """A report in which every text from outside is this one."""
    urn = f"urn:pulumi:dev::shop::{outside}::{outside}"
    place = Place(outside, 3)
    lines = (Line("~", outside, outside, outside), Line("+", outside, after=outside), Line("-", outside, outside))
    effects = (Effect(Kind.ADDRESS, "it is made anew", outside), Effect(Kind.IGNORED, "it has no effect", outside))
    changes = (
        Change("update", outside, outside, urn, effects, lines, (), place),
        Change("replace", outside, outside, urn, (), lines, (outside, outside), place),
    )
    findings = (Finding(outside, "mandatory", outside, urn, "high", outside, place),)
    problems = (Problem("error", f"x{outside}", urn, place), Problem("warning", f"x{outside}"))
    grants = (Grant(outside, outside, (outside, outside)),)
    costs = (Cost("node", outside, 1, 2),)
    return [
        StackReport(outside, changes, 1, findings, findings, 1, grants, grants, costs, problems, problems),
        StackReport(outside, unchanged=3),
    ]


def structure(tokens: list[Token]) -> list[object]:
    return [(each.type, each.tag, structure(each.children or [])) for each in tokens]


def parsed(comment: str) -> list[object]:
    return structure(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(comment))


def one_line(outside: str) -> str:
    # Each line of a message is an item of its own.
    return " ".join(outside.split()) or "x"


@FEWER
@given(OUTSIDE)
@example("``` \n```")
@example("` | `")
@example("a\\")
@example("\\|")
@example("<!-- --></details><script>")
@example("@everyone #1 https://example.com")
def test_no_text_from_outside_changes_what_a_comment_consists_of(outside: str) -> None:
    comment = markdown.comment("A title", of(one_line(outside)), "key")

    assert parsed(comment) == parsed(markdown.comment("A title", of("x"), "key"))


@FEWER
@given(OUTSIDE)
def test_text_from_outside_stands_in_code_only(outside: str) -> None:
    tokens = (
        MarkdownIt("commonmark").enable("table").parse(markdown.comment("A title", of("§" + one_line(outside)), "k"))
    )

    prose = [child.content for token in tokens for child in token.children or () if child.type == "text"]
    assert not any("§" in part for part in prose)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[object] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        self.found.append(data)


def tags(document: str) -> list[object]:
    parser = Tags()
    parser.feed(document)
    return parser.found


@FEWER
@given(OUTSIDE)
@example("</code></pre><script>alert(1)</script>")
def test_no_text_from_outside_is_markup_of_the_page(outside: str) -> None:
    found, expected = (html.render("A title", page("A title", of(one_line(each)))) for each in (outside, "x"))

    assert tags(found) == tags(expected)


@FEWER
@given(OUTSIDE)
@example(EVIL)
@example(f" \t{EVIL}")
@example(f"x\n{EVIL}")
@example(f"x\r{EVIL}\u2028{EVIL}")
@example("##[add-mask]x")
@example("x ###[command]x")
@example("##vso[task.setvariable]x")
@example("\r")
def test_no_form_commands_a_ci_system(outside: str) -> None:
    reports = of(outside)
    blocks = page("A title", reports)

    forms = [
        markdown.comment("A title", reports, outside),
        text.render(blocks),
        html.render("A title", blocks),
        sarif.render(reports, "folder"),
        junit.render(reports),
        safe_json({outside: outside}),
    ]

    for form in forms:
        assert "##[" not in form and "##vso[" not in form
        assert not any(line.lstrip().startswith("::") for line in form.splitlines())
        assert not any(c in form for c in "\r\x1b\x00\u202e\u2028")


@FEWER
@given(OUTSIDE)
def test_sarif_and_junit_stay_well_formed(outside: str) -> None:
    reports = of(outside)

    results = json.loads(sarif.render(reports))["runs"][0]["results"]
    suites = ET.fromstring(junit.render(reports).partition("?>")[2])

    assert len(results) == 3
    assert [suite.get("failures") for suite in suites] == ["2", "0"]


def test_the_marker_lets_one_comment_be_found_whatever_the_key() -> None:
    assert markdown.comment("T", [], "diff --> x\n").startswith("<!-- cloud-stacks:diff-x -->\n")


@pytest.mark.parametrize("stacks", [2, 40, 1500])
def test_a_comment_stays_below_the_limit_and_says_where_the_rest_is(stacks: int) -> None:
    lines = tuple(Line("~", f"p{i}", "x" * 300, "y" * 300) for i in range(200 if stacks < 100 else 1))
    long = Change("update", "a:b:C", "n" * 50, "urn", (), lines, (), None)
    reports = [StackReport(f"stack-{i}-{'x' * 60}", (long,)) for i in range(stacks)]

    comment = markdown.comment("A title", reports, "key", "report.md")

    assert len(comment) <= 64_000
    assert "stack-0" in comment and "The whole report is in the artifact `report.md`." in comment


def test_stacks_without_a_change_are_one_line() -> None:
    comment = markdown.comment("A title", [StackReport(name, unchanged=70) for name in ("a", "b", "c")], "key")

    assert comment.splitlines()[1:] == ["## A title", "", "Unchanged: `a`, `b`, `c`."]


def test_sarif_names_the_programs_file_from_the_repositorys_root() -> None:
    [run] = json.loads(sarif.render(of("x"), "infrastructure/"))["runs"]

    [uri] = {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]}
    assert uri == "infrastructure/x"
    assert {each["ruleId"] for each in run["results"]} == {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert run["results"][0]["partialFingerprints"]


def test_a_report_is_written_in_every_form(tmp_path: Path) -> None:
    write(tmp_path, "A title", of("x"), "key")

    names = {"comment.md", "report.md", "report.html", "report.sarif", "report.xml", "report.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert json.loads((tmp_path / "report.json").read_text())["stacks"][0]["failed"] is True


def test_the_page_shows_a_comment_as_it_is() -> None:
    golden = (Path(__file__).parent / "golden" / "annotation-changed.md").read_text().splitlines()[1:]
    quoted = "\n".join(f"> {line}".rstrip() for line in golden)

    page = (Path(__file__).parents[2] / "docs" / "pull-requests.md").read_text()

    # UPDATE_GOLDENS=1 writes the golden file alone.
    assert quoted in page


def test_the_picture_is_of_the_comment() -> None:
    comment = (Path(__file__).parent / "golden" / "annotation-changed.md").read_text()

    # UPDATE_GOLDENS=1 draws it anew.
    if os.environ.get("UPDATE_GOLDENS"):
        PICTURE.write_text(drawn(comment))
    assert PICTURE.read_text() == drawn(comment)

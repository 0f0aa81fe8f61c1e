"""A report for people, for programs and for CI, and the exit code that goes with it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from cloud_controller.doctor import report
from cloud_controller.doctor.findings import Check, Finding, Result, Severity


def check(name: str, *after: str) -> Check:
    return Check(
        name=name,
        holds=f"{name} are well",
        why="it matters",
        lines=(),
        page=f"runbooks/{name}.md",
        run=lambda _: (),
        after=frozenset(after),
    )


PASSED = Result(check("leader"))
UNDONE = Result(check("routes"), not_done="GET routes: forbidden")
PARTLY = Result(check("rights"), out_of_reach="nobody can ask")
WARNED = Result(check("quotas"), (Finding(what="9 of 10 routes", remedy="ask for more", severity=Severity.WARNING),))
PODS = Result(check("pods"), (Finding(subject="pod/a/b", what="it waits", evidence=("one two",), remedy="mend it"),))
NODES = Result(check("nodes", "pods"), (Finding(subject="node/c", what="it is <new>", remedy="wait"),))


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([PASSED], 0),
        ([PASSED, PARTLY], 0),
        ([PASSED, UNDONE], 3),
        ([PASSED, WARNED], 3),
        ([PODS, UNDONE, WARNED], 4),
    ],
    ids=["well", "out of reach", "not checked", "warning", "critical"],
)
def test_the_exit_code_says_how_bad_it_is(results: list[Result], code: int) -> None:
    assert report.exit_code(results) == code


def test_people_read_the_cause_first_then_what_follows_then_what_was_not_checked() -> None:
    assert "\n".join(report.text([NODES, PODS, PASSED, UNDONE])) == (
        """\
1. [critical] pod/a/b: it waits
   check     pods
   evidence  one two
   why       it matters
   do        mend it
   read      docs/runbooks/pods.md

These follow from what is above, at least in part:

2. [critical] node/c: it is <new>
   check     nodes
   why       it matters
   do        wait
   read      docs/runbooks/nodes.md
   after     pods

not checked: routes (routes are well): GET routes: forbidden
2 critical, 0 warnings, 1 checks passed, 1 not checked"""
    )


def test_what_nobody_can_ask_is_told_and_does_not_count_as_passed() -> None:
    assert [*report.text([PASSED, PARTLY])] == [
        "out of reach: rights: nobody can ask",
        "no findings, 1 checks passed, 1 out of reach in part",
    ]


def test_a_healthy_cluster_is_one_line() -> None:
    assert [*report.text([PASSED])] == ["no findings, 1 checks passed"]


def test_programs_read_every_part_of_a_finding() -> None:
    assert report.document([NODES, PODS, PASSED, UNDONE, PARTLY]) == {
        "findings": [
            {
                "check": "pods",
                "severity": "critical",
                "subject": "pod/a/b",
                "what": "it waits",
                "evidence": ["one two"],
                "why": "it matters",
                "remedy": "mend it",
                "page": "runbooks/pods.md",
                "followsFrom": [],
            },
            {
                "check": "nodes",
                "severity": "critical",
                "subject": "node/c",
                "what": "it is <new>",
                "evidence": [],
                "why": "it matters",
                "remedy": "wait",
                "page": "runbooks/nodes.md",
                "followsFrom": ["pods"],
            },
        ],
        "notChecked": [{"check": "routes", "reason": "GET routes: forbidden"}],
        "outOfReach": [{"check": "rights", "reason": "nobody can ask"}],
        "passed": ["leader"],
    }


def test_ci_sees_a_failure_a_check_with_findings_and_a_skipped_one_that_was_not_done() -> None:
    suite = ET.fromstring(report.junit([NODES, PASSED, UNDONE, PARTLY]))

    cases = {case.get("name"): [each.tag for each in case] for case in suite}
    assert cases == {"nodes": ["failure"], "leader": [], "routes": ["skipped"], "rights": ["skipped"]}
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "2")


def test_ci_shows_the_whole_finding() -> None:
    (failure,) = ET.fromstring(report.junit([NODES])).iter("failure")

    assert failure.get("message") == "it is <new>"
    assert "do        wait" in (failure.text or "")

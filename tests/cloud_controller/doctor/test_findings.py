"""Checks run one after another, and their findings are shown with the first causes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import NoReturn

import pytest

from cloud_controller.cloud import Unavailable
from cloud_controller.doctor.checks import ALL
from cloud_controller.doctor.findings import Check, Finding, OutOfReach, Result, Severity, examine, explained
from cloud_controller.doctor.seen import Seen, Target, Unreadable


def seen() -> Seen:
    def closed(*_: object) -> NoReturn:
        raise Unavailable("GET machines: no answer")

    return Seen(closed, closed, closed, Target(), now=lambda: datetime(2026, 1, 1, tzinfo=UTC))


def check(name: str, *after: str, run: Callable[[Seen], Iterable[Finding]] = lambda _: ()) -> Check:
    return Check(
        name=name, holds="all is well", why="it matters", lines=(), page="x.md", run=run, after=frozenset(after)
    )


def wrong(name: str, *after: str, severity: Severity = Severity.CRITICAL, of: frozenset[str] | None = None) -> Result:
    return Result(check(name, *after), (Finding(what=name, remedy="mend it", severity=severity, follows_from=of),))


def order(*results: Result) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.check.name, each.causes) for each in explained(results)]


def test_a_finding_of_a_check_whose_causes_found_nothing_is_a_first_cause() -> None:
    assert order(Result(check("pods")), wrong("nodes", "pods")) == [("nodes", ())]


def test_a_finding_comes_after_the_one_that_explains_it() -> None:
    assert order(wrong("nodes", "pods"), wrong("pods")) == [("pods", ()), ("nodes", ("pods",))]


def test_a_finding_is_explained_through_a_check_that_found_nothing() -> None:
    assert order(wrong("cloud"), Result(check("pods", "cloud")), wrong("nodes", "pods"))[1] == ("nodes", ("cloud",))


def test_the_nearest_cause_explains_a_finding() -> None:
    assert order(wrong("cloud"), wrong("pods", "cloud"), wrong("nodes", "pods"))[2] == ("nodes", ("pods",))


def test_a_finding_can_say_that_nothing_explains_it() -> None:
    assert order(wrong("pods"), wrong("nodes", "pods", of=frozenset())) == [("pods", ()), ("nodes", ())]


def test_a_warning_explains_nothing() -> None:
    assert order(wrong("pods", severity=Severity.WARNING), wrong("nodes", "pods")) == [("nodes", ()), ("pods", ())]


def test_critical_first_causes_come_before_warnings() -> None:
    assert [name for name, _ in order(wrong("a", severity=Severity.WARNING), wrong("b"))] == ["b", "a"]


def test_what_was_found_before_something_could_not_be_read_is_kept() -> None:
    def run(_: Seen) -> Iterator[Finding]:
        yield Finding(what="first", remedy="mend it")
        raise Unreadable("the rest is hidden")

    (result,) = examine([check("a", run=run)], seen())

    assert ([each.what for each in result.findings], result.not_done) == (["first"], "the rest is hidden")


def test_evidence_of_others_is_one_line_without_secrets_or_control_characters() -> None:
    said = "\x1b[31mtoken: abcdef0123456789\x1b[0m\nnext " + 1000 * "x"
    looks = [check("a", run=lambda _: [Finding(what="w", evidence=(said,), remedy="mend it")])]

    ((evidence,),) = [finding.evidence for result in examine(looks, seen()) for finding in result.findings]

    assert evidence.isprintable()
    assert "abcdef0123456789" not in evidence
    assert len(evidence) < 700


def test_what_is_out_of_reach_is_one_line_without_secrets_or_control_characters() -> None:
    def run(_: Seen) -> Iterator[Finding]:
        yield from ()
        raise OutOfReach("\x1b[31mtoken: abcdef0123456789\x1b[0m\nnext")

    (result,) = examine([check("a", run=run)], seen())

    assert result.out_of_reach == "token: [redacted] next"


def test_what_could_not_be_read_is_asked_for_once() -> None:
    asked = []
    look = seen()

    def read() -> None:
        asked.append(1)
        raise Unavailable("GET machines: no answer")

    for _ in range(2):
        with pytest.raises(Unreadable, match="no answer"):
            look.once("machines", read)

    assert asked == [1]


def test_the_error_behind_something_unreadable_is_kept() -> None:
    with pytest.raises(Unreadable) as caught:
        seen().cloud()

    assert isinstance(caught.value.__cause__, Unavailable)


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
def test_a_check_comes_after_those_that_explain_it(each: Check) -> None:
    names = [other.name for other in ALL]

    assert each.after <= {*names[: names.index(each.name)]}

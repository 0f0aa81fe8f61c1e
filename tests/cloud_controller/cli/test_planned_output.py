"""How the plans of manifests are shown: text, Markdown and SARIF, which no name or reason from outside can disturb."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cloud_controller.cli.planned_output import code, markdown, one_line, text
from cloud_controller.cli.planned_sarif import sarif
from cloud_controller.cli.planned_service import (
    ATTENTION,
    CHANGES,
    Outcome,
    PlannedService,
    Refusal,
    ServicesPlan,
    planned,
)
from cloud_controller.cli.service_files import Source
from cloud_controller.plan import Action, ActionKind, Attention, FieldChange, Json

WEB = "service/shop/web"
SOURCE = Source("deploy/web.yaml", 1, 1, {"metadata.annotations.example.com/a": 6, "spec.ports[0]": 9})
CREATE = Action(ActionKind.CREATE, WEB, "create load balancer a: 80/TCP; 2 backends")
DELETE = Action(ActionKind.DELETE, WEB, "delete load balancer lb-1 (a)", reason="the Service no longer needs it")
LISTENER = Action(ActionKind.DELETE, f"{WEB}/listener/80/TCP", "delete listener")
REPLACE = Action(
    ActionKind.REPLACE, WEB, "replace lb-1; the address changes", (FieldChange("scheme", "internal", "public"),)
)
IGNORED = Action(
    ActionKind.IGNORE, WEB, "not supported", (FieldChange("annotation example.com/a", None, "x"),), reason="no such"
)
WHY = "invalid: annotation example.com/a: 'x' is wrong"
FAULT = Action(ActionKind.IGNORE, WEB, "nothing is changed", reason=WHY, attention=Attention.REFUSED)


def service(*actions: Action, wanted: bool = True, refusal: Refusal | None = None) -> PlannedService:
    annotations = {"scheme": "example.com/a"}
    return planned("shop/web", SOURCE, actions, wanted=wanted, refusal=refusal, annotations=annotations)


def plan(*services: PlannedService) -> ServicesPlan:
    return ServicesPlan(services)


@pytest.mark.parametrize(
    ("found", "outcome", "code"),
    [
        (service(), Outcome.UP_TO_DATE, 0),
        (service(wanted=False), Outcome.NOT_SERVED, 0),
        (service(IGNORED), Outcome.UP_TO_DATE, 0),
        (service(CREATE), Outcome.CREATED, CHANGES),
        (service(LISTENER), Outcome.CHANGED, CHANGES),
        (service(DELETE, wanted=False), Outcome.DELETED, CHANGES),
        # A spare load balancer is deleted, and the Service keeps its own.
        (service(DELETE), Outcome.CHANGED, CHANGES),
        (service(REPLACE), Outcome.REPLACED, ATTENTION),
        (service(replace(DELETE, reason="the address changes: …"), wanted=True), Outcome.REPLACED, ATTENTION),
        (service(replace(REPLACE, held="0123456789ab")), Outcome.REPLACED, ATTENTION),
        (service(FAULT), Outcome.REFUSED, ATTENTION),
        (service(LISTENER, FAULT), Outcome.REFUSED, ATTENTION),
        (service(refusal=Refusal("no")), Outcome.REFUSED, ATTENTION),
    ],
)
def test_a_service_has_one_outcome_and_it_decides_the_exit_code(
    found: PlannedService, outcome: Outcome, code: int
) -> None:
    assert (found.outcome, plan(found).exit_code) == (outcome, code)


def test_the_exit_code_is_that_of_the_worst_outcome_and_0_without_services() -> None:
    assert plan().exit_code == 0
    assert plan(service(), service(CREATE)).exit_code == CHANGES
    assert plan(service(CREATE), service(REPLACE), service()).exit_code == ATTENTION


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (service(REPLACE), 6),
        (service(FAULT), 6),
        (service(refusal=Refusal('services "web" is forbidden: annotation example.com/a: no', "")), 6),
        (service(refusal=Refusal("…", "spec.ports[0].nodePort")), 9),
        (service(refusal=Refusal("namespaces not found")), 1),
        (service(CREATE), 1),
    ],
)
def test_an_outcome_is_at_the_line_of_what_explains_it(found: PlannedService, line: int) -> None:
    assert found.line == line


def test_text_has_a_block_for_each_service_and_a_summary() -> None:
    found = replace(plan(service(REPLACE), service(FAULT), service()), ignored=2, notes=("assumed",))

    assert text(found).splitlines() == [
        "shop/web (deploy/web.yaml:6): address replaced",
        "  +- service/shop/web: replace lb-1; the address changes",
        "       scheme: internal -> public",
        "shop/web (deploy/web.yaml:6): refused",
        "  annotation example.com/a: 'x' is wrong",
        "shop/web (deploy/web.yaml:1): up to date",
        "note: assumed",
        "3 Services: 1 refused, 1 address replaced, 1 up to date; 2 other objects ignored",
    ]


def test_a_held_replacement_shows_the_annotation_that_lets_it_happen() -> None:
    line = 'cloud-controller/acknowledge-address-change: "0123456789ab"'
    held = replace(REPLACE, held="0123456789ab", acknowledgement=line)

    assert f"to let it happen once, annotate the Service: {line}" in text(plan(service(held, held)))
    assert f"annotate the Service: `{line}`" in markdown(plan(service(held)))
    assert "annotate" not in text(plan(service(REPLACE), service(replace(LISTENER, held="0123456789ab"))))


def test_a_warning_is_shown_at_its_line_whatever_the_outcome() -> None:
    warned = replace(service(), warnings=("policy a: annotation example.com/a: odd",))

    assert "  warning: policy a: annotation example.com/a: odd" in text(plan(warned)).splitlines()
    assert "  - `warning: policy a: annotation example.com/a: odd`" in markdown(plan(warned)).splitlines()
    assert warned.to_json()["warnings"] == ["policy a: annotation example.com/a: odd"]
    [result] = results(plan(warned))
    assert (result["ruleId"], region(result)) == ("api-server-warning", {"startLine": 6})
    assert plan(warned).exit_code == 0


def test_markdown_shows_what_changes_and_counts_the_rest() -> None:
    assert markdown(plan(service(REPLACE), service())).splitlines() == [
        "### 2 Services: 1 address replaced, 1 up to date",
        "",
        "- **address replaced** `shop/web` (`deploy/web.yaml:6`)",
        "  - `+- service/shop/web: replace lb-1; the address changes`",
        "    - `scheme: internal -> public`",
    ]


HOSTILE = (
    "`` ` @everyone [x](http://example.com)",
    "a\n\n# heading\n```\n<script>",
    "</details><!-- | | -->\r\n::error::x",
    "\x1b[31mred\u202ereversed\u2028line",
    "`",
    "",
)


@pytest.mark.parametrize("words", HOSTILE)
def test_words_from_outside_never_leave_their_code_span(words: str) -> None:
    found = markdown(
        plan(service(refusal=Refusal(words)), service(replace(REPLACE, summary=f"{words}; the address changes")))
    )

    for line in found.splitlines()[2:]:
        # Each line is its own list item; what is not in a code span is ours.
        outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", line)
        assert re.fullmatch(r" *- (\*\*[a-z ]+\*\*  \(\))?", outside), line
        assert line.isprintable()


@pytest.mark.parametrize("words", HOSTILE)
def test_words_from_outside_are_one_printable_line_of_text(words: str) -> None:
    shown = one_line(words)

    assert shown.isprintable()
    assert (
        "\n" not in text(plan(service(refusal=Refusal(words)))).partition("refused\n  ")[2].partition("\n1 Service")[0]
    )


def test_a_code_span_is_longer_than_the_backticks_within() -> None:
    assert code("a``b") == "```a``b```"
    assert code("`a") == "`` `a ``"


def results(found: ServicesPlan) -> list[Json]:
    return sarif(found)["runs"][0]["results"]  # type: ignore[no-any-return]


def test_sarif_has_a_result_for_each_finding_at_its_line() -> None:
    found = results(plan(service(REPLACE), service(FAULT), service(DELETE, wanted=False), service(IGNORED), service()))

    assert [(each["ruleId"], each["level"], region(each)) for each in found] == [
        ("address-replaced", "warning", {"startLine": 6}),
        ("service-refused", "error", {"startLine": 6}),
        ("load-balancer-deleted", "warning", {"startLine": 1}),
        ("setting-ignored", "note", {"startLine": 6}),
    ]
    assert found[0]["message"]["text"].endswith("the address changes (scheme: internal -> public)")
    rules = sarif(plan())["runs"][0]["tool"]["driver"]["rules"]
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in found)


def region(result: Json) -> Json:
    return result["locations"][0]["physicalLocation"]["region"]


def test_sarif_escapes_links() -> None:
    [odd] = results(plan(service(refusal=Refusal("[x](http://e)"))))

    assert "[x]\\(http://e)" in odd["message"]["text"]


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("./a b#1.yaml", "a%20b%231.yaml"),
        ("../base/deploy/web.yaml", "base/deploy/web.yaml"),
        ("../../base/web.yaml", "base/web.yaml"),
        ("deploy/../web.yaml", "web.yaml"),
        ("/tmp/web.yaml", "file:///tmp/web.yaml"),
        ("-", "stdin"),
    ],
)
def test_every_result_has_a_file_because_github_refuses_a_log_in_which_one_has_none(
    file: str, uri: str, earlier: bool
) -> None:
    [result] = results(plan(replace(service(FAULT), source=Source(file, 1, 1), earlier=earlier)))

    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
    assert region(result) == {"startLine": 1}


def test_json_says_where_each_service_is_and_what_becomes_of_it() -> None:
    document = replace(plan(service(REPLACE), service(FAULT)), ignored=1).to_json()

    assert document["counts"] == {"refused": 1, "address replaced": 1}
    assert document["services"][0] == {
        "service": "shop/web",
        "file": "deploy/web.yaml",
        "line": 6,
        "document": 1,
        "outcome": "address replaced",
        "actions": [REPLACE.to_json()],
    }
    assert document["services"][1]["refusal"] == "annotation example.com/a: 'x' is wrong"

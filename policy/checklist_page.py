"""Writes the pages of the checklist: each line with what holds it, and each rule.

`python -m policy.checklist_page lines|rules` prints one; `make docs` writes both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from policy import clouds
from policy.checklist import POLICIES
from policy.lines import LINES
from policy.owners import CHECKS, COMPONENTS, OPEN, Component
from policy.rules import Rule, StackRule

_MADE = "<!-- Made by `make docs` from policy/; edit the rules there. -->"
_ABOUT = (
    "Each line of the checklist (seed 002, section 11) has an owner that runs: a [rule](policy-rules.md) that holds "
    "the program to it before it runs, a component that makes it so, or a check of the running cluster. What is still "
    "to be built is open. A rule that also reports good programs (its page says which) is advisory for now, in "
    "production too: what it finds is reported, and refuses nothing."
)


def lines_page() -> str:
    """The lines of the checklist (002 §11), a row for each that holds one."""
    rows = [row for line in LINES for row in rows_of(line)]
    return "\n".join(
        (
            "# The production checklist",
            "",
            _MADE,
            "",
            _ABOUT,
            "",
            "| line | what it asks for | held by | level | test |",
            "|---|---|---|---|---|",
            *rows,
            "",
        )
    )


def rows_of(line: str) -> Iterator[str]:
    """The rows of one line; none where nothing holds it."""
    head = f"| {line} | {LINES[line]} |"
    for rule in POLICIES:
        if line in rule.about.get("lines", ()):
            assert rule.enforcement_level is not None
            link = f"[`{rule.name}`](policy-rules.md#{rule.name})"
            level = rule.enforcement_level.value + (" for now" if "reports_good" in rule.about else "")
            yield f"{head} rule {link} | {level} | `{where_tested(rule)}` |"
    for component in components().get(line, ()):
        yield f"{head} component `{component.module}`: {component.does} | always | `{component.test}` |"
    for check in CHECKS:
        if line in check.lines:
            link = f"[`{check.name}`](doctor-checks.md#{check.name})"
            yield f"{head} check {link} of doctor: {check.holds} | on request | `{check.test}` |"
    if line in OPEN:
        yield f"{head} {OPEN[line]} | open | |"


def components() -> dict[str, tuple[Component, ...]]:
    """The components that hold lines, and those of every cloud, by line."""
    found = dict(COMPONENTS)
    for cloud in clouds.descriptors():
        for line, held in cloud.components.items():
            found[line] = (*found.get(line, ()), *held)
    return found


def rules_page() -> str:
    """Every rule: what it judges, its level and its settings, and what it does not see."""
    table = [f"| [`{rule.name}`](#{rule.name}) | {rule.display_name} | {_standing(rule)} |" for rule in POLICIES]
    return "\n".join(
        (
            "# The rules of the policy pack",
            "",
            _MADE,
            "",
            "[The policy pack](policies.md) explains levels, exemptions and settings.",
            "",
            "| rule | what must be so | on | level | severity | 002 |",
            "|---|---|---|---|---|---|",
            *table,
            "",
            *(text for rule in POLICIES for text in _entry(rule)),
        )
    )


def where_tested(rule: Rule) -> str:
    """The file of the rule's tests, which mirrors its module."""
    package, _, module = rule.module.rpartition(".")
    folder = package.replace(".", "/").replace("policy/checklist", "policy")
    return f"tests/{folder}/test_{module}_rule.py"


def _standing(rule: Rule) -> str:
    assert rule.enforcement_level is not None
    assert rule.severity is not None
    assert rule.framework is not None
    on = "stack" if isinstance(rule, StackRule) else "resource"
    return f"{on} | {rule.enforcement_level.value} | {rule.severity.value} | {rule.framework.reference}"


def _entry(rule: Rule) -> Iterator[str]:
    yield f"## {rule.name}"
    yield ""
    yield f"{rule.description} [More]({rule.url})."
    yield ""
    yield rule.about["judges"]
    yield ""
    notes = [
        f"- On {cloud.name}: {cloud.notes[rule.name]}" for cloud in clouds.descriptors() if rule.name in cloud.notes
    ]
    yield from (*notes, "") if notes else ()
    if good := rule.about.get("reports_good"):
        yield f"**Advisory for now**, in production too, because it also reports good programs: {good}."
        yield ""
    yield f"**To do:** {rule.remediation_steps}"
    yield ""
    for name, schema in rule.about.get("settings", {}).items():
        yield f"- Setting `{name}`: {schema['description']}"
    if rule.about.get("settings"):
        yield ""
    if rule.remediation:
        yield f"**Level `remediate`:** {rule.remediation.does}"
        yield ""
    if unseen := rule.about.get("unseen"):
        yield f"**Not seen:** {unseen}"
        yield ""


if __name__ == "__main__":
    sys.stdout.write({"lines": lines_page, "rules": rules_page}[sys.argv[1]]())

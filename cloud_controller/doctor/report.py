"""How the results of the checks are shown: for people, as JSON, and as JUnit XML for CI. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from cloud_controller.doctor.findings import Explained, Result, Severity, explained


def exit_code(results: Sequence[Result]) -> int:
    """0: all is well; 3: warnings, or a check could not be done; 4: something critical."""
    findings = [finding for result in results for finding in result.findings]
    if any(finding.severity is Severity.CRITICAL for finding in findings):
        return 4
    return 3 if findings or any(result.not_done for result in results) else 0


def text(results: Sequence[Result], docs: str = "docs/") -> Iterator[str]:
    """The lines for people: first causes first, then what follows from them, then what could not be checked."""
    found = explained(results)
    first = [each for each in found if not each.causes]
    later = [each for each in found if each.causes]
    for number, each in enumerate(first, 1):
        yield from _finding(number, each, docs)
    if later:
        yield "These follow from what is above, at least in part:"
        yield ""
    for number, each in enumerate(later, 1 + len(first)):
        yield from _finding(number, each, docs)
    not_done = [each for each in results if each.not_done]
    for result in not_done:
        yield f"not checked: {result.check.name} ({result.check.holds}): {result.not_done}"
    for result in results:
        if result.out_of_reach:
            yield f"out of reach: {result.check.name}: {result.out_of_reach}"
    yield _summary(results, found)


def _summary(results: Sequence[Result], found: Sequence[Explained]) -> str:
    """One line of counts."""
    critical = sum(1 for each in found if each.finding.severity is Severity.CRITICAL)
    parts = [f"{critical} critical", f"{len(found) - critical} warnings"] if found else ["no findings"]
    parts.append(f"{sum(1 for each in results if each.passed)} checks passed")
    for count, what in (
        (sum(1 for each in results if each.not_done), "not checked"),
        (sum(1 for each in results if each.out_of_reach), "out of reach in part"),
    ):
        parts += [f"{count} {what}"] if count else []
    return ", ".join(parts)


def _finding(number: int, each: Explained, docs: str) -> Iterator[str]:
    finding, check = each.finding, each.check
    where = f"{finding.subject}: " if finding.subject else ""
    yield f"{number}. [{finding.severity}] {where}{finding.what}"
    yield f"   check     {check.name}"
    for evidence in finding.evidence:
        yield f"   evidence  {evidence}"
    yield f"   why       {check.why}"
    yield f"   do        {finding.remedy}"
    yield f"   read      {docs}{check.page}"
    if each.causes:
        yield f"   after     {', '.join(each.causes)}"
    yield ""


def document(results: Sequence[Result]) -> dict[str, Any]:
    """The form of `--output json`."""
    return {
        "findings": [each.to_json() for each in explained(results)],
        "notChecked": [{"check": each.check.name, "reason": each.not_done} for each in results if each.not_done],
        "outOfReach": [
            {"check": each.check.name, "reason": each.out_of_reach} for each in results if each.out_of_reach
        ],
        "passed": [each.check.name for each in results if each.passed],
    }


def junit(results: Sequence[Result]) -> str:
    """A test case a check, for CI: findings are failures, what could not be checked is skipped."""
    found = explained(results)
    suite = ET.Element(
        "testsuite",
        name="cloud-controller doctor",
        tests=str(len(results)),
        failures=str(sum(1 for each in results if each.findings)),
        skipped=str(sum(1 for each in results if not each.passed and not each.findings)),
    )
    for result in results:
        case = ET.SubElement(suite, "testcase", classname="doctor", name=result.check.name)
        mine = [each for each in found if each.check is result.check]
        if mine:
            failure = ET.SubElement(case, "failure", message=mine[0].finding.what)
            failure.text = "\n".join(
                line for number, each in enumerate(mine, 1) for line in _finding(number, each, "docs/")
            )
        elif (reason := result.not_done or result.out_of_reach) is not None:
            ET.SubElement(case, "skipped", message=reason)
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"

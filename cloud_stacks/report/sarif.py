"""Findings and errors as SARIF 2.1.0, each with the line of the program that registers the resource. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

from cloud_stacks.comparison import StackReport
from cloud_stacks.effects import Kind
from cloud_stacks.outcome import Finding, Place
from cloud_stacks.report.words import safe, safe_json

Json = Any
_ADDRESS: Final = "address-change"
_FAILURE: Final = "plan-failure"
_RULES: Final = {
    _ADDRESS: "A change replaces or deletes the address of a load balancer.",
    _FAILURE: "The stack cannot be planned as the program declares it.",
}
_SCORES: Final = {"critical": "9.5", "high": "8.0", "medium": "5.0", "low": "2.0"}
"""Code scanning sorts by this number."""
_URGENT: Final = (Kind.ADDRESS, Kind.GONE)


def render(reports: Sequence[StackReport], folder: str = "") -> str:
    """`folder`: the project's, from the repository's root. Every result has a place: the program, if nothing nearer."""
    rules: dict[str, Json] = {}
    results: list[Json] = []
    for report in reports:
        for finding in report.findings:
            rules.setdefault(finding.policy, _rule(finding))
            about = f"{finding.message} ({finding.urn}, stack {report.stack})"
            results.append(_result(finding.policy, _level(finding), about, finding.urn, finding.place, folder))
        for problem in report.problems:
            if problem.severity == "error":
                _own(rules, _FAILURE)
                about = f"{problem.message} (stack {report.stack})"
                results.append(_result(_FAILURE, "error", about, problem.urn, problem.place, folder))
        for change in report.changes:
            for effect in change.effects:
                if effect.kind in _URGENT:
                    _own(rules, _ADDRESS)
                    about = f"{change.name}: {effect.text} {effect.cause} (stack {report.stack})"
                    results.append(_result(_ADDRESS, "warning", about, change.urn, change.place, folder))
    driver = {"name": "cloud-stacks", "rules": list(rules.values())}
    return safe_json(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": results}],
        }
    )


def _level(finding: Finding) -> str:
    return "error" if finding.fails else {"not-evaluated": "note"}.get(finding.level, "warning")


def _rule(finding: Finding) -> Json:
    described = {"shortDescription": {"text": safe(finding.description or finding.policy)}}
    score = _SCORES.get(finding.severity)
    return {"id": finding.policy, **described, **({"properties": {"security-severity": score}} if score else {})}


def _own(rules: dict[str, Json], rule: str) -> None:
    rules.setdefault(rule, {"id": rule, "shortDescription": {"text": _RULES[rule]}})


def _result(rule: str, level: str, message: str, urn: str, place: Place | None, folder: str) -> Json:
    place = place or Place("__main__.py", 1)
    uri = "/".join(part for part in (folder.strip("/"), place.path) if part)
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": safe(message)},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": max(place.line, 1)}}}
        ],
        # The same finding on another line is the same: code scanning compares this.
        "partialFingerprints": {"cloudStacks/v1": sha256(f"{rule}\n{urn}\n{message}".encode()).hexdigest()[:32]},
    }

"""Renders the plans of manifests as SARIF 2.1.0: findings at the files' lines, for code review. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

from cloud_controller.cli.planned_output import one_line
from cloud_controller.cli.planned_service import Outcome, PlannedService, ServicesPlan, path_in, replaces_address
from cloud_controller.plan import ActionKind


class _Rule(NamedTuple):
    id: str
    level: str
    description: str


_REFUSED = _Rule("service-refused", "error", "The API server or the controller refuses the Service.")
_REPLACED = _Rule("address-replaced", "warning", "The load balancer is replaced, and clients need its new address.")
_DELETED = _Rule("load-balancer-deleted", "warning", "The load balancer is deleted.")
_WARNED = _Rule("api-server-warning", "warning", "The API server accepts the Service with a warning.")
_IGNORED = _Rule("setting-ignored", "note", "The cloud does not support a setting of the Service.")
_RULES = (_REFUSED, _REPLACED, _DELETED, _WARNED, _IGNORED)


def sarif(plan: ServicesPlan) -> dict[str, Any]:
    """The log with one run."""
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.description},
            "defaultConfiguration": {"level": rule.level},
        }
        for rule in _RULES
    ]
    driver = {"name": "cloud-controller", "version": version("cloud-controller"), "rules": rules}
    results = [result for service in plan.services for result in _results(service)]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _results(service: PlannedService) -> Iterator[dict[str, Any]]:
    match service.outcome:
        case Outcome.REFUSED:
            yield _result(_REFUSED, service, service.refusal.why if service.refusal else "", service.line)
        case Outcome.REPLACED:
            first = next(action for action in service.actions if replaces_address(action))
            changes = "; ".join(str(change) for change in first.changes)
            yield _result(_REPLACED, service, f"{first.summary} ({changes or first.reason})", service.line)
        case Outcome.DELETED:
            summaries = (action.summary for action in service.actions if action.kind is ActionKind.DELETE)
            yield _result(_DELETED, service, "; ".join(summaries), service.line)
    for warning in service.warnings:
        yield _result(_WARNED, service, warning, service.source.line_of(path_in(warning)))
    for action in service.actions:
        for change in action.changes if action.kind is ActionKind.IGNORE else ():
            path = change.field.replace("annotation ", "metadata.annotations.", 1)
            text = f"{change.field}: {action.summary}: {action.reason}"
            yield _result(_IGNORED, service, text, service.source.line_of(path))


def _result(rule: _Rule, service: PlannedService, words: str, line: int) -> dict[str, Any]:
    # `[text](target)` would be a link.
    text = one_line(f"Service {service.key}: {words}").replace("](", "]\\(")
    # GitHub refuses a whole log in which one result has no file, even if that is not in the repository.
    location = {
        "logicalLocations": [{"fullyQualifiedName": service.key, "kind": "object"}],
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(service.source.name)},
            "region": {"startLine": line},
        },
    }
    return {
        "ruleId": rule.id,
        "ruleIndex": _RULES.index(rule),
        "level": rule.level,
        "message": {"text": text},
        "locations": [location],
    }


def _uri(file: str) -> str:
    path = PurePath(os.path.normpath(file))
    if path.is_absolute():
        return path.as_uri()
    # Earlier manifests often lie beside the repository, above which a log knows no folder.
    return quote(os.fsencode(re.sub(r"^(\.\./)+", "", path.as_posix())))

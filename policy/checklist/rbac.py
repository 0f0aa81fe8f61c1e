"""Rule: no role of the stack grants everything, neither by a wildcard nor by aggregation.

That holds for every role, not only the cloud controller manager's: a binding elsewhere, or later, decides who gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from policy.label_selectors import selects
from policy.objects import dig, each
from policy.rbac_rights import ADMIN, BOOTSTRAPPING, ROLES
from policy.rules import ADVISORY, HIGH, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, every_known, first_known

_FIELDS = ("apiGroups", "resources", "verbs", "nonResourceURLs")
_AGGREGATED = "rbac.authorization.k8s.io/aggregate-to-"
_BROAD = {
    ADMIN: (BOOTSTRAPPING, "grants everything"),
    "system:aggregate-to-admin": ({**BOOTSTRAPPING, f"{_AGGREGATED}admin": "true"}, "changes roles"),
    "system:aggregate-to-edit": ({**BOOTSTRAPPING, f"{_AGGREGATED}edit": "true"}, "reads every Secret"),
}
"""Roles that come with Kubernetes, with their labels and what they do."""


def problems(subject: Subject) -> Iterator[Problem]:
    """Roles with wildcards, and roles that take in the rules of Kubernetes' own broad ones."""
    if subject.kind in ROLES:
        yield from _in_role(subject.props)


def _in_role(props: Mapping[str, Any]) -> Iterator[Problem]:
    for index, rule in enumerate(each(dig(props, "rules"))):
        yield partial(_wild, index, rule)
    for index, selector in enumerate(each(dig(props, "aggregationRule", "clusterRoleSelectors"))):
        yield partial(_aggregates, index, selector)


def _wild(index: int, rule: Callable[[], Any]) -> str | None:
    found = every_known(partial(_wildcard, rule, field) for field in _FIELDS)
    return f"rules[{index}] grants {', '.join(found)}" if found else None


def _wildcard(rule: Callable[[], Any], field: str) -> str | None:
    found = first_known(partial(_as_wildcard, value, field) for value in each(dig(rule(), field)))
    return f"{field} {found}" if found else None


def _as_wildcard(value: Callable[[], Any], field: str) -> str | None:
    """`*`, `*/scale` (of every resource), `pods/*` and `/*` (every path); `/metrics/*` covers only some paths."""
    text = str(value())
    if field == "resources" and text.endswith("/*"):
        return f"{text} (which Kubernetes does not take for a wildcard)"
    return text if text in ("*", "/*") or text.startswith("*/") else None


def _aggregates(index: int, selector: Callable[[], Any]) -> str | None:
    for name, (labels, what) in _BROAD.items():
        if selects(selector(), labels):
            return f"aggregationRule.clusterRoleSelectors[{index}] selects {name} too, which {what}"
    return None


ROLES_WITHOUT_WILDCARDS = ResourceRule(
    "rbac-role-avoid-wildcards",
    problems,
    why=(
        "Roles must name what they grant. A wildcard in verbs, resources, API groups or paths also grants what is "
        "added to the cluster later, and a cloud controller manager with one can read every Secret."
    ),
    level=ADVISORY,
    title="Roles without wildcards",
    severity=HIGH,
    lines=["11.1.6", "11.3.3"],
    sections="8.2",
    judges=(
        "No role of the stack has `*` among its verbs, resources (also `*/scale`, and `pods/*`, which grants nothing), "
        "API groups or paths (also `/*`; `/metrics/*` covers only a part of the paths). Every role counts, not only "
        "the CCM's: bindings are separate objects, and may be added later. The selectors of an aggregated role, by "
        "labels and expressions, select neither `cluster-admin` (an empty selector, or the label "
        "`kubernetes.io/bootstrapping`) nor the rules of `admin` or `edit`. `rbac-binding-avoid-broad-roles` judges "
        "bindings."
    ),
    unseen="A role that lists every verb, resource or group by its name.",
    tags=["rbac"],
    remedy=(
        "List the verbs, resources and API groups in use (cloud_controller/rbac.py has those of this project's CCM). "
        "Label the roles that belong to an aggregated one with a label of your own."
    ),
    url="https://kubernetes.io/docs/concepts/security/rbac-good-practices/#least-privilege",
)

"""Rule: no role of the stack grants everything, neither by a wildcard nor through another role.

That holds for every role, not only the cloud controller manager's: a binding elsewhere, or later, decides who gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from policy.objects import dig, each
from policy.rules import ADVISORY, HIGH, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, every_known, first_known

_GROUP = "rbac.authorization.k8s.io"
_ROLES = (f"{_GROUP}/ClusterRole", f"{_GROUP}/Role")
_BINDINGS = (f"{_GROUP}/ClusterRoleBinding", f"{_GROUP}/RoleBinding")
_FIELDS = ("apiGroups", "resources", "verbs", "nonResourceURLs")
_ADMIN = "cluster-admin"
# What every role that comes with Kubernetes is labelled with, cluster-admin too.
_ADMIN_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}


def problems(subject: Subject) -> Iterator[Problem]:
    """Roles with wildcards, roles that aggregate cluster-admin's rules, and bindings to cluster-admin."""
    if subject.kind in _ROLES:
        yield from _in_role(subject.props)
    elif subject.kind in _BINDINGS:
        yield partial(_bound, subject.props)


def _in_role(props: Mapping[str, Any]) -> Iterator[Problem]:
    for index, rule in enumerate(each(dig(props, "rules"))):
        yield partial(_wild, index, rule)
    for index, selector in enumerate(each(dig(props, "aggregationRule", "clusterRoleSelectors"))):
        yield partial(_aggregates_admin, index, selector)


def _wild(index: int, rule: Callable[[], Any]) -> str | None:
    found = every_known(partial(_wildcard, rule, field) for field in _FIELDS)
    return f"rules[{index}] grants {', '.join(found)}" if found else None


def _wildcard(rule: Callable[[], Any], field: str) -> str | None:
    values = each(dig(rule(), field))
    found = first_known(partial(_as_wildcard, value) for value in values)
    return f"{field} {found}" if found else None


def _as_wildcard(value: Callable[[], Any]) -> str | None:
    """`*`, `*/scale` (of every resource) and `/*` (every path); `/metrics/*` covers only a part of the paths."""
    text = str(value())
    return text if text in ("*", "/*") or text.startswith("*/") else None


def _aggregates_admin(index: int, selector: Callable[[], Any]) -> str | None:
    labels = dig(selector(), "matchLabels") or {}
    if dig(selector(), "matchExpressions") or any(_ADMIN_LABELS.get(name) != labels[name] for name in labels):
        return None
    return f"aggregationRule.clusterRoleSelectors[{index}] selects {_ADMIN} too, which grants everything"


def _bound(props: Mapping[str, Any]) -> str | None:
    role = dig(props, "roleRef")
    bound = dig(role, "kind") == "ClusterRole" and dig(role, "name") == _ADMIN
    return f"binds {_ADMIN}, which grants everything" if bound else None


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
        "No role of the stack has `*` among its verbs, resources (also `*/scale`), API groups or paths (also `/*`; "
        "`/metrics/*` covers only a part of the paths). Every role counts, not only the CCM's: bindings are "
        "separate objects, and may be added later. An aggregated role may not include `cluster-admin` (an empty "
        "selector, or the label `kubernetes.io/bootstrapping`), and no binding may name it; the rule does not "
        "evaluate selectors with expressions."
    ),
    tags=["rbac"],
    remedy=(
        "List the verbs, resources and API groups in use (cloud_controller/rbac.py has those of this project's CCM). "
        "Bind a role of your own instead of cluster-admin."
    ),
    url="https://kubernetes.io/docs/concepts/security/rbac-good-practices/#least-privilege",
)

"""Rule: no role of the stack names rights that lead to more rights, or to credentials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from policy.objects import dig, each, items
from policy.powers import power
from policy.rbac_rights import ROLES
from policy.rules import ADVISORY, HIGH, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, every_known

_Text = Callable[[], Any]
"""An element of one of the rule's lists; raises UnknownValueError."""


def problems(subject: Subject) -> Iterator[Problem]:
    """Rules of roles with such rights."""
    if subject.kind in ROLES:
        for index, rule in enumerate(each(dig(subject.props, "rules"))):
            yield partial(_problem, index, rule)


def _problem(index: int, rule: Callable[[], Any]) -> str | None:
    content = rule()
    # The empty name is that of requests for all objects.
    names = [*items(dig(content, "resourceNames"))]
    named = bool(names) and "" not in names
    rights = product(*(each(dig(content, field)) for field in ("apiGroups", "resources", "verbs")))
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for resource, enough_to, verb in every_known(partial(_power, named, *right) for right in rights):
        found[resource, enough_to].append(verb)
    if not found:
        return None
    said = [f"{', '.join(verbs)} of {resource}, enough to {what}" for (resource, what), verbs in found.items()]
    return f"rules[{index}] grants {' and '.join(said)}"


def _power(named: bool, group: _Text, resource: _Text, verb: _Text) -> tuple[str, str, str] | None:
    """The resource, what the right to it is enough to, and the verb; None: it is no power."""
    enough_to = power(str(group()), str(resource()), str(verb()), named)
    return (str(resource()), enough_to, str(verb())) if enough_to else None


ROLES_WITHOUT_POWERS = ResourceRule(
    "rbac-role-avoid-powers",
    problems,
    why=(
        "Some rights are enough to take more, or to read credentials: with `bind`, `escalate`, `impersonate`, tokens "
        "or all Secrets a program has far more than its role says, and so has whoever takes it over."
    ),
    level=ADVISORY,
    title="Roles without powers to take more",
    severity=HIGH,
    lines=["11.1.6", "11.3.3"],
    sections="8.2",
    judges=(
        "No role of the stack names one of these rights: `get`, `list` or `watch` of Secrets without `resourceNames`; "
        "`create` of serviceaccounts/token without names; `escalate`, or `bind` without names, of roles; `impersonate` "
        "without names; exec, attach and ephemeral containers of pods; nodes/proxy; approval of certificate requests; "
        "changes of admission webhooks. Every role counts, not only the CCM's. `rbac-role-avoid-wildcards` judges "
        "wildcards."
    ),
    unseen=(
        "The right to `create` pods and workloads, by which a program can run as any ServiceAccount of the namespace: "
        "too many programs need it. The CCM may not (`ccm-rbac-avoid-excess`)."
    ),
    tags=["rbac"],
    remedy=(
        "Name the objects with `resourceNames`, mount the Secret instead of reading it from the API, or leave the "
        "right out. Exempt the role of a program whose purpose it is."
    ),
    url="https://kubernetes.io/docs/concepts/security/rbac-good-practices/#privilege-escalation-risks",
)

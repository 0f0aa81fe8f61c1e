"""Rule: no role of the stack names rights that lead to more rights, or to credentials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pulumi_policy.proxy import UnknownValueError

from policy.objects import dig, each, items
from policy.powers import power
from policy.rbac_rights import ROLES
from policy.rules import ADVISORY, HIGH, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, known


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
    (groups, _), (resources, _), (verbs, _) = fields = [
        _values(content, field) for field in ("apiGroups", "resources", "verbs")
    ]
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for group in groups:
        for resource in resources:
            for verb in verbs:
                if enough_to := power(group, resource, verb, named):
                    found[resource, enough_to].append(verb)
    if found:
        said = [f"{', '.join(verbs)} of {resource}, enough to {what}" for (resource, what), verbs in found.items()]
        return f"rules[{index}] grants {' and '.join(said)}"
    for _, unknown in fields:
        if unknown is not None:
            raise unknown
    return None


def _values(rule: Any, field: str) -> tuple[list[str], UnknownValueError | None]:
    """The field's known texts, of which the core's group is empty, and the first unknown one."""
    found, unknown = known(partial(lambda value: [str(value())], value) for value in each(dig(rule, field)))
    return [text for [text] in found], unknown


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

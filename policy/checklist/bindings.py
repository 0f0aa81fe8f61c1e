"""Rule: no binding of the stack gives away one of Kubernetes' own broad roles, or a role to everyone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, Final

from policy.objects import dig, each
from policy.rbac_rights import ADMIN, BINDINGS, CLUSTER_ROLE
from policy.rules import ADVISORY, HIGH, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem, every_known, known

_CLUSTER_WIDE: Final = BINDINGS[0]
_SECRETS: Final = {"admin", "edit"}
"""Kubernetes' own roles for people, which read every Secret of a namespace."""
_EVERYONE: Final = frozenset(
    {"system:anonymous", "system:unauthenticated", "system:authenticated", "system:serviceaccounts"}
)
# Everyone has them anyway.
_PUBLIC: Final = frozenset(
    {
        "system:basic-user",
        "system:discovery",
        "system:public-info-viewer",
        "system:service-account-issuer-discovery",
    }
)
# Made to be bound to others than Kubernetes' own components.
_BINDABLE: Final = _PUBLIC | {
    "system:auth-delegator",
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
    "system:monitoring",
    "system:node-bootstrapper",
    "system:node-proxier",
}


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Bindings that give away too much, or to too many."""
    # A name that is unknown is not that of a role to be recognised.
    roles = [role for role in stack.of(CLUSTER_ROLE) if not role.is_patch]
    made, _ = known(partial(dig, role.props, "metadata", "name") for role in roles)
    for binding in stack.of(*BINDINGS):
        yield binding, partial(_gives_too_much, binding, frozenset(made))
        yield binding, partial(_gives_to_everyone, binding)


def _gives_too_much(binding: Subject, made: Collection[str]) -> str | None:
    role = dig(binding.props, "roleRef")
    name, kind = str(dig(role, "name")), str(dig(role, "kind"))
    if name in made or kind != CLUSTER_ROLE.rpartition("/")[2]:
        return None
    if name == ADMIN:
        return f"binds {ADMIN}, which grants everything"
    if name in _SECRETS and (binding.kind == _CLUSTER_WIDE or _has_programs(binding)):
        where = "of the cluster" if binding.kind == _CLUSTER_WIDE else "of its namespace"
        return f"binds {name}, which reads every Secret {where}"
    if name.startswith("system:") and name not in _BINDABLE:
        return f"binds {name}, which is for Kubernetes' own components"
    return None


def _has_programs(binding: Subject) -> bool:
    """Whether it is for ServiceAccounts, too; people may have such a role in a namespace of theirs."""
    subjects = each(dig(binding.props, "subjects"))
    return bool(every_known(partial(_is_program, subject) for subject in subjects))


def _is_program(subject: Callable[[], Any]) -> bool:
    return dig(subject(), "kind") == "ServiceAccount" or str(dig(subject(), "name")).startswith("system:serviceaccount")


def _gives_to_everyone(binding: Subject) -> str | None:
    found = every_known(partial(_everyone, subject) for subject in each(dig(binding.props, "subjects")))
    role = str(dig(binding.props, "roleRef", "name"))
    if not found or role in _PUBLIC:
        return None
    return f"binds {role} to {', '.join(found)}"


def _everyone(subject: Callable[[], Any]) -> str | None:
    name = dig(subject(), "name")
    return str(name) if dig(subject(), "kind") != "ServiceAccount" and name in _EVERYONE else None


BINDINGS_ARE_NARROW = StackRule(
    "rbac-binding-avoid-broad-roles",
    problems,
    why=(
        "A binding must give a role that is made for its subjects. Kubernetes' own broad roles grant far more than a "
        "program needs, and a role for everyone is also one for any pod that is broken into."
    ),
    level=ADVISORY,
    reports_good=(
        "bindings of roles that Kubernetes has for other programs: `system:volume-scheduler`, "
        "`system:node-problem-detector`, `system:persistent-volume-provisioner`"
    ),
    title="Bindings of narrow roles to few",
    severity=HIGH,
    lines=["11.1.6", "11.3.3"],
    sections="8.2",
    judges=(
        "No binding of the stack names `cluster-admin`; `admin` or `edit`, which read every Secret, in the whole "
        "cluster or for a ServiceAccount (people may have them in a namespace); or a role whose name starts with "
        "`system:`, unless the stack makes it or it is made to be bound, such as `system:auth-delegator`. No binding "
        "is for everyone (`system:authenticated`, `system:serviceaccounts`, `system:unauthenticated`, "
        "`system:anonymous`), but for the roles that everyone has anyway."
    ),
    unseen=(
        "Broad roles under another name that the stack does not make. Members of groups: `system:masters` needs no "
        "binding, because certificates confer it."
    ),
    tags=["rbac"],
    remedy=(
        "Make a role with the verbs and resources in use, and bind it to the ServiceAccount, user or group that needs "
        "it. Exempt a binding for administrators."
    ),
    url="https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles",
)

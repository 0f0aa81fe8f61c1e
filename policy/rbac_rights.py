"""The rights that a stack's roles and bindings give a ServiceAccount."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pulumi_policy.proxy import UnknownValueError

from policy.label_selectors import selects
from policy.objects import dig, each, items
from policy.rules import Stack
from policy.subjects import Subject
from policy.unknowns import collect, first_known, known, not_evaluated

_GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLE: Final = f"{_GROUP}/ClusterRole"
ROLES: Final = (CLUSTER_ROLE, f"{_GROUP}/Role")
BINDINGS: Final = (f"{_GROUP}/ClusterRoleBinding", f"{_GROUP}/RoleBinding")
SERVICE_ACCOUNT: Final = "core/ServiceAccount"
ALL: Final = "*"
ADMIN: Final = "cluster-admin"
BOOTSTRAPPING: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
"""The labels of every role that comes with Kubernetes, `cluster-admin` too."""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on objects of a resource; `*` stands for all, as in RBAC."""

    group: str
    resource: str
    """With its subresource, as in `nodes/status`; or a path such as `/metrics`."""
    verb: str
    namespace: str = ""
    """Empty: the whole cluster."""
    name: str = ""
    """Empty: every object."""

    def covers(self, other: Right) -> bool:
        """Whether who has this right has the other one, too."""
        return (
            self.namespace in ("", other.namespace)
            and self.name in ("", other.name)
            and self.group in (ALL, other.group)
            and self.verb in (ALL, other.verb)
            and (
                self.resource in (ALL, other.resource)
                # `*/scale`: this subresource of everything.
                or (self.resource.startswith("*/") and other.resource.endswith(self.resource[1:]))
            )
        )


@dataclass(frozen=True, slots=True)
class Granted:
    """What a ServiceAccount may do."""

    rights: frozenset[Right]
    bound: bool
    """Whether a binding of the stack names it."""
    open: UnknownValueError | None
    """Why it may have more rights: an unknown value, or a role that the stack does not make."""


_EVERYTHING = frozenset({Right(ALL, ALL, ALL)})
_BUILT_IN: Final = {
    (CLUSTER_ROLE, ADMIN): _EVERYTHING,
    (CLUSTER_ROLE, "system:auth-delegator"): frozenset(
        {
            Right("authentication.k8s.io", "tokenreviews", "create"),
            Right("authorization.k8s.io", "subjectaccessreviews", "create"),
        }
    ),
    (f"{_GROUP}/Role", "extension-apiserver-authentication-reader"): frozenset(
        Right("", "configmaps", verb, "kube-system", "extension-apiserver-authentication")
        for verb in ("get", "list", "watch")
    ),
}
"""Roles that come with Kubernetes, as far as cloud controller managers have them (kubernetes/kubernetes,
plugin/pkg/auth/authorizer/rbac/bootstrappolicy)."""


@dataclass(frozen=True, slots=True)
class _Reference:
    """A role as a binding names it. `namespace` empty: for the whole cluster."""

    kind: str
    name: str
    namespace: str


def granted(stack: Stack, cluster: str, namespace: str, account: str) -> Granted:
    """What a ServiceAccount of the cluster may do by the stack's roles."""
    objects = [each for each in stack.of(*ROLES, *BINDINGS) if each.cluster == cluster]
    roles = [each for each in objects if each.kind in ROLES]
    bound, unknown = known(partial(_bound, each, namespace, account) for each in objects if each.kind in BINDINGS)
    rights: set[Right] = set()
    for reference in bound:
        found, more = known(collect(_of_reference(reference, roles)))
        rights.update(*found)
        unknown = unknown or more
    return Granted(frozenset(rights), bool(bound), unknown)


def _bound(binding: Subject, namespace: str, account: str) -> _Reference | None:
    """The role that this binding gives the account."""
    if not first_known(partial(_is, each, namespace, account) for each in each(dig(binding.props, "subjects"))):
        return None
    role = dig(binding.props, "roleRef")
    scope = "" if binding.kind == BINDINGS[0] else binding.namespace
    return _Reference(f"{_GROUP}/{dig(role, 'kind')}", str(dig(role, "name")), scope)


def _is(subject: Callable[[], Any], namespace: str, account: str) -> bool:
    """Whether a binding's subject is the account, by itself, by its user name or by one of its groups."""
    kind, name = dig(subject(), "kind"), dig(subject(), "name")
    if kind == "ServiceAccount":
        return bool(name == account and dig(subject(), "namespace") == namespace)
    if kind == "User":
        return bool(name == f"system:serviceaccount:{namespace}:{account}")
    return name in ("system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def _of_reference(reference: _Reference, roles: Sequence[Subject]) -> Iterator[Callable[[], Iterable[Right]]]:
    made = [role for role in roles if _is_named(role, reference)]
    for role in made:
        yield from _of_role(role, reference.namespace, roles, frozenset())
    if not made:
        built_in = _BUILT_IN.get((reference.kind, reference.name))
        if built_in is None:
            kind = reference.kind.rpartition("/")[2]
            raise not_evaluated(f"{kind} {reference.name} is not in the stack: what it grants is not known")
        yield lambda: built_in


def _is_named(role: Subject, reference: _Reference) -> bool:
    return (
        role.kind == reference.kind
        and dig(role.props, "metadata", "name") == reference.name
        and (role.kind == CLUSTER_ROLE or role.namespace == reference.namespace)
    )


def _of_role(
    role: Subject, namespace: str, roles: Sequence[Subject], within: frozenset[int]
) -> Iterator[Callable[[], Iterable[Right]]]:
    """What each of a role's rules grants; of an aggregated role, those of the roles that it selects."""
    selectors = [*items(dig(role.props, "aggregationRule", "clusterRoleSelectors"))]
    if not selectors:
        for rule in each(dig(role.props, "rules")):
            yield partial(_of_rule, rule, namespace)
        return
    if any(selects(selector, BOOTSTRAPPING) for selector in selectors):
        yield lambda: _EVERYTHING
    within |= {id(role)}
    for other in roles:
        if other.kind == CLUSTER_ROLE and id(other) not in within:
            labels = dig(other.props, "metadata", "labels") or {}
            if any(selects(selector, labels) for selector in selectors):
                yield from _of_role(other, namespace, roles, within)


def _of_rule(rule: Callable[[], Any], namespace: str) -> list[Right]:
    content = rule()

    def texts(field: str) -> list[str]:
        return [str(text) for text in items(dig(content, field))]

    named = [
        Right(group, resource, verb, namespace, name)
        for group in texts("apiGroups")
        for resource in texts("resources")
        for verb in texts("verbs")
        for name in texts("resourceNames") or [""]
    ]
    return [*named, *(Right("", path, verb) for path in texts("nonResourceURLs") for verb in texts("verbs"))]

"""What rules judge: a resource, or each Kubernetes object that a resource holds.

A list (`DaemonSetList`, `List`) holds several objects. A patch (`DaemonSetPatch`) holds a part of one: what it leaves
out may be set elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pulumi_policy import PolicyResource

from policy.objects import dig, each

SERVICE = "core/Service"
CONFIG_MAP = "core/ConfigMap"
SECRET = "core/Secret"
_KUBERNETES = "kubernetes:"
_GROUPS = {"extensions": "apps", "v1": "core"}
"""Other names of groups: the former one of workloads; of the core, where a CustomResource makes such an object."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One object, as a rule judges it."""

    kind: str
    """`GROUP/KIND` of a Kubernetes object, whatever its version (`core/Service`); else Pulumi's type."""
    props: Mapping[str, Any]
    """Reading an unknown value raises UnknownValueError."""
    name: str
    """The resource's name in the program."""
    config: Mapping[str, Any]
    """The rule's settings."""
    is_patch: bool = False
    resource: PolicyResource | None = None
    """With its dependencies and provider; None where a rule judges one resource at a time."""

    @property
    def namespace(self) -> str:
        """A Kubernetes object's, if its kind has one. Raises UnknownValueError."""
        return str(dig(self.props, "metadata", "namespace") or "default")

    @property
    def urn(self) -> str | None:
        """The resource's; None where the engine knows it."""
        return self.resource.urn if self.resource is not None else None

    @property
    def cluster(self) -> str:
        """The URN of the provider, which is the cluster of a Kubernetes object; empty: the default one."""
        provider = self.resource.provider if self.resource is not None else None
        return provider.urn if provider is not None else ""


def subjects(
    type: str, props: Mapping[str, Any], name: str, config: Mapping[str, Any], resource: PolicyResource | None = None
) -> Iterator[Callable[[], Subject]]:
    """Each object of a resource; an unknown one raises UnknownValueError only when it is called."""
    kind = _kind(type)
    if not type.startswith(_KUBERNETES) or not kind.endswith("List"):
        bare = kind.removesuffix("Patch") if type.startswith(_KUBERNETES) else kind
        subject = Subject(bare, props, name, config, bare != kind, resource)
        yield lambda: subject
        return
    for item in each(dig(props, "items")):
        yield partial(_item, kind.removesuffix("List"), item, name, config, resource)


def _item(
    kind: str, item: Callable[[], Any], name: str, config: Mapping[str, Any], resource: PolicyResource | None
) -> Subject:
    props = item()
    if kind.endswith("/"):
        # A `List` of anything: each item says what it is.
        group, _, _ = str(dig(props, "apiVersion") or "").rpartition("/")
        kind = f"{_GROUPS.get(group, group) or 'core'}/{dig(props, 'kind')}"
    return Subject(kind, props, name, config, resource=resource)


def _kind(type: str) -> str:
    if not type.startswith(_KUBERNETES):
        return type
    group, _, kind = type.removeprefix(_KUBERNETES).rpartition(":")
    group = group.partition("/")[0]
    return f"{_GROUPS.get(group, group)}/{kind}"


def made_of(subject: Subject, key: str, type: str) -> set[str]:
    """The URNs of the stack's resources of a type that a property is made of; their ids are unknown in a preview."""
    needed = subject.resource.property_dependencies.get(key, []) if subject.resource is not None else []
    return {each.urn for each in needed if each.resource_type == type}

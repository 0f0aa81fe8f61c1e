"""The rights that a plan gives and takes: rules of RBAC, statements of the clouds' policies. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cloud_stacks.outcome import SECRET, UNKNOWN, Resource
from policy import clouds
from policy.clouds.interface import Meaning
from policy.documents import matches
from policy.objects import dig, object_name

Json = Any
_DENIES: Final = "deny "
_BUT: Final = "everything but "
_RBAC: Final = "kubernetes:rbac.authorization.k8s.io/v1:"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """`holder` may do `what` `on` something; a holder is a role or a policy, or who gets one."""

    holder: str
    on: str
    what: str

    @property
    def denies(self) -> bool:
        """Whether it takes a right; no wildcard of what is allowed includes that."""
        return self.what.startswith(_DENIES)


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """The rights of one holder on one thing, for people."""

    holder: str
    on: str
    what: tuple[str, ...]


def changes(resources: Iterable[Resource]) -> tuple[list[Grant], list[Grant]]:
    """The rights that the plan gives, and those that it takes."""
    before, after = set[Right](), set[Right]()
    known = [cloud.meaning for cloud in clouds.descriptors()]
    for resource in resources:
        if resource.op != "same":
            before.update(_rights(resource, resource.before, known))
            after.update(_rights(resource, resource.after, known))
    return _grouped(_beyond(after, before)), _grouped(_beyond(before, after))


def told_of(kind: str) -> set[str]:
    """The inputs of a resource whose differences are told as rights."""
    if kind.startswith(_RBAC):
        return {"rules", "subjects"}
    return {key for cloud in clouds.descriptors() for key in cloud.meaning.documents.get(kind, ())}


def _beyond(rights: set[Right], others: set[Right]) -> set[Right]:
    """The rights that the others do not have, nor include in a wildcard."""
    wild: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
    for other in others:
        if "*" in other.what and _BUT not in other.what:
            wild[other.holder, other.on, other.denies].append(other.what)
    return {
        each
        for each in rights - others
        if not any(matches(pattern, each.what) for pattern in wild[each.holder, each.on, each.denies])
    }


def _grouped(rights: set[Right]) -> list[Grant]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for right in sorted(rights):
        found[right.holder, right.on].append(right.what)
    return [Grant(holder, on, tuple(what)) for (holder, on), what in found.items()]


def _rights(resource: Resource, inputs: Mapping[str, Json], known: Iterable[Meaning]) -> Iterator[Right]:
    kind = resource.type
    if kind.startswith(_RBAC):
        name = object_name(inputs) or resource.name
        of = kind.removeprefix(_RBAC)
        yield from _bound(inputs) if of.endswith("Binding") else _ruled(f"{of} {name}", inputs)
    for cloud in known:
        for key in cloud.documents.get(kind, ()):
            if key in inputs:
                yield from _stated(f"{kind.rpartition(':')[2]} {resource.name}", inputs[key])
        if kind in cloud.attached and inputs:
            policy, holder = (str(inputs.get(key, UNKNOWN)) for key in cloud.attached[kind])
            yield Right(holder, "", f"policy {policy}")


def _ruled(holder: str, inputs: Mapping[str, Json]) -> Iterator[Right]:
    for rule in _items(inputs.get("rules")):
        if not isinstance(rule, dict):
            yield Right(holder, UNKNOWN, UNKNOWN)
            continue
        named = ", ".join(_texts(rule, "resourceNames"))
        for resource in _texts(rule, "resources"):
            for group in _texts(rule, "apiGroups") or [""]:
                on = f"{resource}.{group}" if group else resource
                for verb in _texts(rule, "verbs"):
                    yield Right(holder, f"{on} ({named})" if named else on, verb)
        for url in _texts(rule, "nonResourceURLs"):
            for verb in _texts(rule, "verbs"):
                yield Right(holder, url, verb)


def _bound(inputs: Mapping[str, Json]) -> Iterator[Right]:
    namespace = dig(inputs, "metadata", "namespace")
    on = f"namespace {namespace}" if namespace else "the cluster"
    role = f"{dig(inputs, 'roleRef', 'kind')} {dig(inputs, 'roleRef', 'name')}"
    for subject in _items(inputs.get("subjects")):
        if not isinstance(subject, dict):
            yield Right(str(subject), on, role)
            continue
        where = f"{subject['namespace']}/" if subject.get("namespace") else ""
        yield Right(f"{subject.get('kind')} {where}{subject.get('name')}", on, role)


def _stated(holder: str, document: Json) -> Iterator[Right]:
    if isinstance(document, str) and document not in (UNKNOWN, SECRET):
        try:
            document = json.loads(document)
        except ValueError:
            document = UNKNOWN
    if not isinstance(document, dict):
        yield Right(holder, UNKNOWN, str(document))
        return
    for statement in _items(document.get("Statement")):
        if not isinstance(statement, dict):
            yield Right(holder, UNKNOWN, UNKNOWN)
            continue
        on = ", ".join(_texts(statement, "Resource") or [f"not {each}" for each in _texts(statement, "NotResource")])
        if statement.get("Condition"):
            on += f" if {json.dumps(statement['Condition'], sort_keys=True)}"
        denies = _DENIES if statement.get("Effect") == "Deny" else ""
        for action in _texts(statement, "Action"):
            yield Right(holder, on, f"{denies}{action}")
        for action in _texts(statement, "NotAction"):
            yield Right(holder, on, f"{denies}{_BUT}{action}")


def _texts(statement: Mapping[str, Json], key: str) -> list[str]:
    return [str(each) for each in _items(statement.get(key))]


def _items(value: Json) -> list[Json]:
    """What is in a list; one thing alone may stand for its list, and so does a hidden one."""
    return value if isinstance(value, list) else [] if value is None else [value]

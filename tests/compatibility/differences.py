"""Compares what two controllers leave, and holds it against a list of intended differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """A field in which the results of a Service differ. None: not there."""

    service: str
    field: str
    peer: Any
    ours: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """`services` and `fields` are patterns as shells have them, alternatives with `|` between them.

    `values`: those of the peer and ours, if the difference is only between these.
    """

    services: str
    fields: str
    peer: str
    ours: str
    reason: str
    values: tuple[Any, Any] | None = None

    def covers(self, found: Found) -> bool:
        """Whether this is it."""
        if self.values not in (None, (found.peer, found.ours)):
            return False
        return _matches(found.service, self.services) and _matches(found.field, self.fields)

    def alternatives(self) -> Iterator[Difference]:
        """It with each of its patterns alone."""
        yield from (replace(self, services=each) for each in self.services.split("|"))
        yield from (replace(self, fields=each) for each in self.fields.split("|"))


def found(peer: Mapping[str, Json], ours: Mapping[str, Json]) -> list[Found]:
    """All differences, field by field. Where but one refuses the Service, that is the one difference."""
    return [each for service in peer for each in _found(service, peer[service], ours[service])]


def _found(service: str, peer: Json, ours: Json) -> Iterator[Found]:
    if peer["refused"] != ours["refused"]:
        yield Found(service, "refused", peer["refused"], ours["refused"])
        return
    of_peer, of_ours = dict(_fields(peer)), dict(_fields(ours))
    for field in sorted({*of_peer, *of_ours}):
        if of_peer.get(field) != of_ours.get(field):
            yield Found(service, field, of_peer.get(field), of_ours.get(field))


def _fields(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each field by its path; a list of words is one field."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _fields(part, f"{path}/{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
        for index, part in enumerate(value):
            yield from _fields(part, f"{path}/{index}")
    else:
        yield path, value


def _matches(text: str, patterns: str) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns.split("|"))


def unlisted(differences: Sequence[Found], listed: Sequence[Difference]) -> list[Found]:
    """What differs though nobody meant it to."""
    return [each for each in differences if not any(difference.covers(each) for difference in listed)]


def outdated(differences: Sequence[Found], listed: Sequence[Difference]) -> list[Difference]:
    """What is listed and differs nowhere, to the single pattern."""
    return [
        alternative
        for each in listed
        for alternative in each.alternatives()
        if not any(alternative.covers(difference) for difference in differences)
    ]

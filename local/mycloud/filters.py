"""Selects objects for a query of the database, as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from local.mycloud.schema import COLUMNS, Record, kind_of

# Evaluated for each row in turn, so that a page costs only its own rows; a list of all objects with the tag would cost
# as much as all pages together.
_HAS_TAG = "EXISTS (SELECT 1 FROM {0} WHERE {0}.id = objects.id AND {0}.key = ? AND {0}.value = ?)"


@dataclass(frozen=True, slots=True)
class Filter:
    """Selects objects of a kind; None or empty: any. `changed_since` is a number of the write sequence.

    `created_until`, `terminated_before`: times. `simulated`: machines with a process (False), or without. `machine_id`
    and `attachment_states`: volumes that are attached, or being attached, to that machine, in those states. `any_tags`:
    each of them is on the object itself or on one of its parts (a load balancer's listeners, backend sets).
    """

    ids: Sequence[str] | None = None
    name: str | None = None
    names: Sequence[str] | None = None
    tags: Sequence[tuple[str, str]] = ()
    any_tags: Sequence[tuple[str, str]] = ()
    states: Sequence[str] | None = None
    network_id: str | None = None
    subnet_id: str | None = None
    cluster_id: str | None = None
    zone: str | None = None
    created_until: str | None = None
    simulated: bool | None = None
    terminated_before: str | None = None
    machine_id: str | None = None
    attachment_states: Sequence[str] | None = None
    changed_since: int | None = None


def where(type_: type[Record], wanted: Filter) -> tuple[str, list[Any]]:
    """The condition of a query of `objects`, and the values of its parameters."""
    clauses: list[str] = ["kind = ?"]
    values: list[Any] = [kind_of(type_)]
    for column, several in (("id", wanted.ids), ("name", wanted.names), ("state", wanted.states)):
        if several is not None:
            clauses.append(f"{column} IN ({','.join('?' * len(several))})")
            values += several
    for column in ("name", *COLUMNS):
        if (value := getattr(wanted, column)) is not None:
            clauses.append(f"{column} = ?")
            values.append(value)
    if wanted.created_until is not None:
        clauses.append("json_extract(body, '$.created_at') <= ?")
        values.append(wanted.created_until)
    if wanted.simulated is not None:
        clauses.append(f"json_extract(body, '$.simulated') IS {'' if wanted.simulated else 'NOT '}1")
    if wanted.terminated_before is not None:
        clauses.append("json_extract(body, '$.terminated_at') < ?")
        values.append(wanted.terminated_before)
    if wanted.machine_id is not None:
        clauses.append("json_extract(body, '$.attachment.machine_id') = ?")
        values.append(wanted.machine_id)
    if wanted.attachment_states is not None:
        clauses.append(f"json_extract(body, '$.attachment.state') IN ({','.join('?' * len(wanted.attachment_states))})")
        values += wanted.attachment_states
    for key, value in wanted.tags:
        clauses.append(_HAS_TAG.format("tags"))
        values += [key, value]
    for key, value in wanted.any_tags:
        clauses.append(f"({_HAS_TAG.format('tags')} OR {_HAS_TAG.format('part_tags')})")
        values += [key, value, key, value]
    if wanted.changed_since is not None:
        clauses.append("version > ?")
        values.append(wanted.changed_since)
    return " AND ".join(clauses), values

"""What listeners were before Services took them over. Pure.

A taken-over listener has the record in its tag. A cloud that cannot change a listener into another deletes it and makes
it anew; IN BETWEEN, ITS TAGS ARE GONE. So a pool of the Service has a copy, and the next plan finds it there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from cloud_controller.load_balancers.model import CLUSTER_UID_TAG, Listener, LoadBalancerModel, Owner, Pool

TAKEN_FROM_TAG = "cloud-controller/taken-from"
"""On a taken-over listener: its previous pool, attributes and tags, as JSON."""
_COPY = re.compile(rf"{TAKEN_FROM_TAG}-(tcp|udp)-(\d{{1,5}})")
"""On a pool: the same of the listener with this protocol and port."""


def with_records(desired: LoadBalancerModel, actual: LoadBalancerModel, owner: Owner) -> LoadBalancerModel:
    """The owner's listeners with the record of what they were, and the pools with copies."""
    present, copies = {each.key: each for each in actual.listeners}, _copies_of(actual, owner)
    listeners: list[Listener] = []
    of_pools: dict[str, dict[str, str]] = {}
    for listener in desired.listeners:
        before, record = present.get(listener.key), copies.get(listener.key)
        if before is None:
            before = _described(listener.key, record)
        else:
            record = before.tags.get(TAKEN_FROM_TAG) if owner.owns(before.tags) else _record(before)
        if record is not None:
            theirs = before.tags if before is not None and not owner.owns(before.tags) else {}
            listener = replace(listener, tags={**theirs, **listener.tags, TAKEN_FROM_TAG: record})
            # A listener that redirects has no pool of its own.
            holder = listener.pool or desired.pools[0].name
            of_pools.setdefault(holder, {})[_copy_tag(listener.key)] = record
        listeners.append(listener)
    pools = (replace(pool, tags={**pool.tags, **of_pools.get(pool.name, {})}) for pool in desired.pools)
    return replace(desired, listeners=tuple(listeners), pools=tuple(pools))


def before_takeover(listener: Listener, owner: Owner) -> Listener | None:
    """What a taken-over listener was; None if it was not taken over, or its tag was edited."""
    was = _described(listener.key, listener.tags.get(TAKEN_FROM_TAG))
    ours = {*owner.tags, CLUSTER_UID_TAG, TAKEN_FROM_TAG}
    return was and replace(was, tags={key: text for key, text in listener.tags.items() if key not in ours})


def lost(actual: LoadBalancerModel, owner: Owner) -> Iterator[Listener]:
    """The listeners that the owner took over and that are gone: as they were, but taken over, with the record."""
    present = {each.key for each in actual.listeners}
    for key, record in _copies_of(actual, owner).items():
        was = _described(key, record)
        if was is not None and key not in present:
            yield replace(was, tags={**was.tags, **owner.tags, TAKEN_FROM_TAG: record})


def former_pools(tags: Mapping[str, str]) -> set[str]:
    """The pools to which the listeners with these tags, or with copies in them, return."""
    records = (text for key, text in tags.items() if key == TAKEN_FROM_TAG or _COPY.fullmatch(key))
    return {was.pool for was in (_described(("", 0), each) for each in records) if was is not None}


def without_records(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags without records and copies."""
    return {key: text for key, text in tags.items() if key != TAKEN_FROM_TAG and not _COPY.fullmatch(key)}


def with_copies_of(pool: Pool, listeners: Collection[tuple[str, int]]) -> Pool:
    """The pool without copies of the records of other listeners."""
    gone = {_copy_tag(key) for key, _ in _copies(pool) if key not in listeners}
    return replace(pool, tags={name: text for name, text in pool.tags.items() if name not in gone})


# --------------------------------------------------------------------------------------------------------- helpers


def _record(listener: Listener) -> str:
    tags = {"tags": dict(listener.tags)} if listener.tags else {}
    was = {"pool": listener.pool, "attributes": dict(listener.attributes), **tags}
    return json.dumps(was, separators=(",", ":"))


def _described(key: tuple[str, int], record: str | None) -> Listener | None:
    """The listener of a record; None if there is none, or somebody edited it."""
    try:
        was = json.loads(record or "null")
        # JSON knows only lists.
        attributes = {name: tuple(of) if isinstance(of, list) else of for name, of in was["attributes"].items()}
        tags = {str(name): str(text) for name, text in was.get("tags", {}).items()}
        return Listener(*key, str(was["pool"]), attributes, tags)
    except (AttributeError, TypeError, ValueError, KeyError):
        return None


def _copy_tag(key: tuple[str, int]) -> str:
    protocol, port = key
    return f"{TAKEN_FROM_TAG}-{protocol.lower()}-{port}"


def _copies_of(model: LoadBalancerModel, owner: Owner) -> dict[tuple[str, int], str]:
    return {key: record for pool in model.pools if owner.owns(pool.tags) for key, record in _copies(pool)}


def _copies(pool: Pool) -> Iterator[tuple[tuple[str, int], str]]:
    for name, record in pool.tags.items():
        if match := _COPY.fullmatch(name):
            yield (match[1].upper(), int(match[2])), record

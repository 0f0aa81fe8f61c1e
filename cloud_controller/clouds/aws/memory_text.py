"""The cache of load balancers as bytes, for a checkpoint that outlives the process. Pure.

Many target groups have the same targets on different ports, so each set of addresses is written once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from cloud_controller.clouds.aws.attributes import listener_defaults
from cloud_controller.clouds.aws.classic_reads import Details
from cloud_controller.clouds.aws.memory import Known, KnownGroup, KnownListener
from cloud_controller.clouds.common.checkpoint import packed, unpacked, without_largest
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import HealthCheck, Listener, Pool

_FORMAT = 1

Tags = Mapping[str, Mapping[str, str]]


def to_bytes(known: Mapping[str, Known], tags: Tags, classic: Details, *, limit: int) -> bytes:
    """The whole cache; if it exceeds `limit` bytes, without the largest load balancers."""
    by_size = sorted(known.items(), key=lambda each: sum(len(group.pool.members) for group in each[1].groups.values()))
    return without_largest(by_size, lambda left: _written(left, tags, classic), limit) or _written([], {}, {})


def from_bytes(written: bytes) -> tuple[dict[str, Known], dict[str, dict[str, str]], Details]:
    """The content written by `to_bytes`. Raises ValueError for anything else."""
    with unpacked(_FORMAT, written) as content:
        sets = [tuple(map(sys.intern, each)) for each in content["sets"]]
        known = {lb_id: _known(each, sets) for lb_id, each in content["known"].items()}
        tags, classic = _texts(content["tags"]), _texts(content["classic"])
    return known, tags, classic


# --------------------------------------------------------------------------------------------------------- writing


def _written(known: Iterable[tuple[str, Known]], tags: Tags, classic: Details) -> bytes:
    sets: dict[tuple[str, ...], int] = {}
    balancers = {lb_id: _balancer_json(each, sets) for lb_id, each in sorted(known)}
    content = {
        "known": balancers,
        "sets": [*sets],
        "tags": {arn: dict(each) for arn, each in tags.items()},
        "classic": {name: dict(each) for name, each in classic.items()},
    }
    return packed(_FORMAT, content)


def _balancer_json(known: Known, sets: dict[tuple[str, ...], int]) -> dict[str, Any]:
    return {
        "arn": known.arn,
        "attributes": dict(known.attributes),
        "made_with": dict(known.made_with),
        "listeners": [[each.arn, _listener_json(each.listener)] for _, each in sorted(known.listeners.items())],
        "groups": [[each.arn, each.attached, _pool_json(each.pool, sets)] for _, each in sorted(known.groups.items())],
    }


def _listener_json(listener: Listener) -> list[Any]:
    return [listener.protocol, listener.port, listener.pool, dict(listener.attributes)]


def _pool_json(pool: Pool, sets: dict[tuple[str, ...], int]) -> dict[str, Any]:
    by_port: dict[int, list[str]] = {}
    for member in sorted(pool.members):
        by_port.setdefault(member.port, []).append(member.address)
    members = [[port, sets.setdefault(tuple(addresses), len(sets))] for port, addresses in sorted(by_port.items())]
    return {
        "name": pool.name,
        "check": asdict(pool.health_check),
        "members": members,
        "attributes": dict(pool.attributes),
    }


# --------------------------------------------------------------------------------------------------------- reading


def _texts(content: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    return {of: {str(key): str(value) for key, value in each.items()} for of, each in content.items()}


def _known(content: Mapping[str, Any], sets: list[tuple[str, ...]]) -> Known:
    listeners = [KnownListener(arn, _listener(*listener)) for arn, listener in content["listeners"]]
    groups = [KnownGroup(arn, _pool(pool, sets), attached) for arn, attached, pool in content["groups"]]
    return Known(
        arn=content["arn"],
        attributes=content["attributes"],
        listeners={each.listener.port: each for each in listeners},
        groups={each.pool.name: each for each in groups},
        made_with={key: tuple(values) for key, values in content["made_with"].items()},
    )


def _listener(protocol: str, port: int, pool: str, attributes: Mapping[str, Any]) -> Listener:
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in attributes.items()}
    # Checkpoints of older versions have no listener attributes.
    return Listener(protocol, port, pool, {**listener_defaults(str(values.get("protocol"))), **values})


def _pool(content: Mapping[str, Any], sets: list[tuple[str, ...]]) -> Pool:
    return Pool(
        content["name"],
        HealthCheck(**content["check"]),
        tuple(_members(content["members"], sets)),
        content["attributes"],
    )


def _members(content: Iterable[tuple[int, int]], sets: list[tuple[str, ...]]) -> Iterable[Member]:
    # What a target group tells of a target: whose machine it is on is not in it.
    return (Member(address, port, address) for port, number in content for address in sets[number])

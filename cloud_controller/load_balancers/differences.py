"""Finds the fields in which a load balancer differs from the desired one, and how each can be changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from cloud_controller.load_balancers.catalogue import Catalogue, Mutability
from cloud_controller.load_balancers.model import HealthCheck, Listener, LoadBalancerModel, Pool
from cloud_controller.plan import FieldChange


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs. `scope` and `field` together match a catalogue entry's `sets`."""

    scope: str
    part: str
    field: str
    before: object
    after: object

    @property
    def sets(self) -> str:
        return f"{self.scope}.{self.field}" if self.scope else self.field

    def in_place(self, catalogue: Catalogue) -> bool:
        return catalogue.mutability(self.sets) is Mutability.IN_PLACE

    def as_field_change(self) -> FieldChange:
        prefix = "health_check." if self.scope == "health_check" else ""
        return FieldChange(f"{prefix}{self.field}", self.before, self.after)


def differences(desired: LoadBalancerModel, actual: LoadBalancerModel) -> list[Difference]:
    found = model_differences(desired, actual)
    pools = {pool.name: pool for pool in actual.pools}
    listeners = {listener.key: listener for listener in actual.listeners}
    for pool in desired.pools:
        if pool.name in pools:
            found += pool_differences(pool, pools[pool.name])
    for listener in desired.listeners:
        if listener.key in listeners:
            found += listener_differences(listener, listeners[listener.key])
    return found


def model_differences(desired: LoadBalancerModel, actual: LoadBalancerModel) -> list[Difference]:
    found = _compare("", "", desired.attributes, actual.attributes)
    if desired.name != actual.name:
        found.append(Difference("", "", "name", actual.name, desired.name))
    return found + _tags("", "", desired.tags, actual.tags)


def pool_differences(desired: Pool, actual: Pool) -> list[Difference]:
    part = f"/pool/{desired.name}"
    checks = (dict(check_values(desired.health_check)), dict(check_values(actual.health_check)))
    return [
        *_compare("pool", part, desired.attributes, actual.attributes),
        *_compare("health_check", part, *checks),
        *_tags("pool", part, desired.tags, actual.tags),
    ]


def listener_differences(desired: Listener, actual: Listener) -> list[Difference]:
    part = f"/listener/{desired}"
    found = _compare("listener", part, desired.attributes, actual.attributes)
    if desired.pool != actual.pool:
        found.append(Difference("listener", part, "pool", actual.pool, desired.pool))
    return found + _tags("listener", part, desired.tags, actual.tags)


def _compare(scope: str, part: str, desired: Mapping[str, object], actual: Mapping[str, object]) -> list[Difference]:
    return [
        Difference(scope, part, key, actual.get(key), value)
        for key, value in sorted(desired.items())
        if actual.get(key) != value
    ]


def _tags(scope: str, part: str, desired: Mapping[str, str], actual: Mapping[str, str]) -> list[Difference]:
    """Compare only the desired tags: others may have added their own."""
    return [
        Difference(scope, part, f"tags.{key}", actual.get(key), value)
        for key, value in sorted(desired.items())
        if actual.get(key) != value
    ]


def check_values(check: HealthCheck) -> list[tuple[str, object]]:
    return [(entry.name, getattr(check, entry.name)) for entry in fields(check)]

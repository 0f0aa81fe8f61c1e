"""Pod readiness gates: the condition types of a cloud, and which Services their conditions wait for. Pure.

A gate keeps a pod unready until its condition is True, here: until the pod is healthy in its load balancers. So a
rolling update removes an old pod only once a new one gets traffic. See docs/readiness-gates.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from cloud_controller.cloud_errors import InvalidConfiguration

Object = dict[str, Any]
"""A Kubernetes object as plain JSON."""

ANNOTATION = "cloud-controller/readiness-gate"
"""On a Service, in every cloud: `true` adds the gate to its new pods, `false` makes no gate wait for this Service."""
OPTION = "--readiness-gates"
_OPENED_LAG = 30.0
"""Seconds for which the kubelet may need to see that the gates of a pod are open. Shorter than the time after which the
pods of a dead node become unready, which leaves their gates open."""
WORDS = {"true": True, "false": False}


class Mode(StrEnum):
    """How an installation serves readiness gates."""

    OFF = "off"
    BY_HAND = "by-hand"
    """The daemon serves them; pods have only those that somebody writes into their templates."""
    INJECT = "inject"
    """An admission policy adds them to pods. Requires Kubernetes 1.36."""


@dataclass(frozen=True, slots=True)
class ReadinessGates:
    """A cloud's readiness gates; part of its descriptor.

    - `condition`: the condition type of the gate that the admission policy adds. It waits for all Services.
    - `service_prefix`: a gate whose type is this prefix and a Service's name waits for that Service alone.
    - `classes`: the load balancer classes (None: no class) whose Services get gates unless an annotation says `false`.
    - `annotations`: the names in the cloud's catalogue that mean the same as `ANNOTATION`, which takes precedence.
    """

    condition: str = "cloud-controller/load-balancer-backend-ready"
    service_prefix: str | None = None
    classes: frozenset[str | None] = frozenset()
    annotations: tuple[str, ...] = ()

    @property
    def by_default(self) -> bool:
        """Whether some Services get gates without an annotation."""
        return bool(self.classes)

    def mode(self, given: str | None, controllers: Collection[str]) -> Mode:
        """The mode of an installation that runs these controllers; `given` None: the cloud's default."""
        if "service" not in controllers:
            return Mode.OFF
        return Mode(given) if given is not None else Mode.INJECT if self.by_default else Mode.OFF

    def flag(self, mode: Mode) -> list[str]:
        """The daemon's flag for this mode, if it is not the cloud's default."""
        on = mode is not Mode.OFF
        return [] if on == self.by_default else [f"{OPTION}={str(on).lower()}"]

    def asked(self, service: Object) -> bool | None:
        """What the Service's annotation says; None without one. Raises InvalidConfiguration for an invalid value."""
        given = service["metadata"].get("annotations") or {}
        for name in (ANNOTATION, *self.annotations):
            if name in given:
                if given[name] not in WORDS:
                    why = f"{given[name][:100]!r} is not a valid value"
                    raise InvalidConfiguration(f"annotation {name}", why, ", ".join(WORDS))
                return WORDS[given[name]]
        return None

    def of_pod(self, pod: Object) -> tuple[str, ...]:
        """The condition types of the pod's gates that are this cloud's."""
        types = (gate["conditionType"] for gate in pod["spec"].get("readinessGates") or [])
        return tuple(dict.fromkeys(each for each in types if self._is_ours(each)))

    def waits_for(self, condition: str, service: Object) -> bool:
        """Whether the pods' condition of this type depends on this Service, if it selects them."""
        if condition != self.condition and self.service_named(condition) != service["metadata"]["name"]:
            return False
        try:
            return self.asked(service) is not False
        except InvalidConfiguration:
            return True  # Its event tells of the value; until it is corrected, pods stay on the safe side.

    def service_named(self, condition: str) -> str | None:
        """The name of the Service in a condition type that names one."""
        prefix = self.service_prefix
        return condition.removeprefix(prefix) if prefix and condition.startswith(prefix) else None

    def _is_ours(self, condition: str) -> bool:
        return condition == self.condition or self.service_named(condition) is not None


def is_held(pod: Object, gates: ReadinessGates) -> bool:
    """Whether the pod lives, has a gate of this cloud and is not ready."""
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not ended and bool(gates.of_pod(pod)) and not _is_true(pod, "Ready")


def closed_gates(pod: Object, gates: ReadinessGates) -> tuple[str, ...]:
    """The pod's gates of this cloud whose condition is not True."""
    return tuple(each for each in gates.of_pod(pod) if not _is_true(pod, each))


def is_otherwise_ready(pod: Object, gates: ReadinessGates) -> bool:
    """Whether only this cloud's gates keep the pod from being ready, so that load balancers may try it."""
    others = {gate["conditionType"] for gate in pod["spec"].get("readinessGates") or []} - {*gates.of_pod(pod)}
    return (
        not pod["metadata"].get("deletionTimestamp")
        and _is_true(pod, "ContainersReady")
        and all(_is_true(pod, each) for each in others)
    )


def counts_as_ready(pod: Object, gates: ReadinessGates, now: datetime) -> bool:
    """Whether load balancers may try the pod although it is not ready: for its closed gates of this cloud alone, or
    because they have just been opened.

    A pod that stays unready behind open gates has another reason: its node is dead.
    """
    if not is_otherwise_ready(pod, gates):
        return False
    ours = gates.of_pod(pod)
    opened = [each.get("lastTransitionTime") for each in _conditions(pod) if each["type"] in ours]
    return bool(closed_gates(pod, gates)) or any(
        (now - datetime.fromisoformat(each)).total_seconds() < _OPENED_LAG for each in opened if each
    )


def state_for_others(pod: Object, gates: ReadinessGates) -> tuple[object, ...]:
    """What may change when the pod's gates of this cloud open, besides themselves."""
    metadata, ours = pod["metadata"], gates.of_pod(pod)
    return (
        metadata.get("labels"),
        metadata.get("deletionTimestamp"),
        pod["spec"].get("nodeName"),
        (pod.get("status") or {}).get("podIPs"),
        {each["type"] for each in _conditions(pod) if each["status"] == "True" and each["type"] not in ours},
    )


def message_of(pod: Object, condition: str) -> str | None:
    """The message of the pod's condition of this type."""
    return next((each.get("message") for each in _conditions(pod) if each["type"] == condition), None)


def selects(service: Object, pod: Object) -> bool:
    """Whether the Service's selector chooses the pod. A Service without a selector chooses none."""
    selector: Mapping[str, str] = service["spec"].get("selector") or {}
    same_namespace = service["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return same_namespace and bool(selector) and selector.items() <= (pod["metadata"].get("labels") or {}).items()


def _is_true(pod: Object, condition: str) -> bool:
    return any(each["type"] == condition and each["status"] == "True" for each in _conditions(pod))


def _conditions(pod: Object) -> list[Object]:
    return (pod.get("status") or {}).get("conditions") or []

"""Topology labels of machines: the zone's ID, which is the same in every account, and the network nodes of EC2's
instance topology."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloud_controller.cloud import AccessDenied, InvalidConfiguration, NotFound
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.common.concurrent_calls import batches

ZONE_ID_LABEL = "topology.k8s.aws/zone-id"
NETWORK_LABEL = "topology.k8s.aws/network-node-layer-"
"""Followed by the layer's number: 1 is the furthest from the machine."""

BATCH = 100
"""The most instances in one DescribeInstanceTopology call."""
_UNTOLD = 300.0
"""Seconds until a machine without topology is read again: it may have just started."""
_ASKED_AGAIN = 3600.0
"""Seconds until the next read after a missing permission, or in a region without the operation."""

Ec2Instance = Mapping[str, Any]
"""An instance from DescribeInstances."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Place:
    """The network nodes above one machine, the furthest first; none: AWS returned none at time `at`."""

    nodes: tuple[str, ...]
    at: float


class Topology:
    """Labels of machines; constant values are read once. Safe to share between threads."""

    def __init__(self, api: Api, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._lock = threading.Lock()
        self._types = re.compile(api.config.topology_types)
        self._zone_ids: dict[str, str] = {}
        self._places: dict[str, _Place] = {}
        self._silent_until = 0.0

    def labels(self, instances: Sequence[Ec2Instance]) -> dict[str, dict[str, str]]:
        """The labels of these machines by ID. Raises CloudError if the zones cannot be read."""
        with self._lock:
            zone_ids = self._zone_ids_of(instances)
            placed = [instance for instance in instances if self._has_place(instance)]
            self._find_places(placed)
            found: dict[str, dict[str, str]] = {}
            for instance in instances:
                machine = instance["InstanceId"]
                zone_id = zone_ids.get(_zone(instance))
                place = self._places.get(machine)
                layers = enumerate(place.nodes if place else (), start=1)
                found[machine] = {
                    **({ZONE_ID_LABEL: zone_id} if zone_id else {}),
                    **{f"{NETWORK_LABEL}{layer}": node for layer, node in layers},
                }
            return found

    def forget_all_but(self, ids: Iterable[str]) -> None:
        """Drop all other machines: these are the only ones."""
        with self._lock:
            self._places = {each: self._places[each] for each in ids if each in self._places}

    def _zone_ids_of(self, instances: Sequence[Ec2Instance]) -> Mapping[str, str]:
        for instance in instances:
            if zone_id := instance["Placement"].get("AvailabilityZoneId"):
                self._zone_ids[_zone(instance)] = zone_id
        if not {_zone(instance) for instance in instances} <= self._zone_ids.keys():
            for zone in self._api.call("ec2", "DescribeAvailabilityZones")["AvailabilityZones"]:
                self._zone_ids[zone["ZoneName"]] = zone["ZoneId"]
        return self._zone_ids

    def _has_place(self, instance: Ec2Instance) -> bool:
        return instance["State"]["Name"] == "running" and self._types.search(instance["InstanceType"]) is not None

    def _find_places(self, instances: Sequence[Ec2Instance]) -> None:
        now = self._clock()
        if now < self._silent_until:
            return
        ids = [instance["InstanceId"] for instance in instances if self._is_to_be_asked(instance["InstanceId"], now)]
        for batch in batches(ids, BATCH):
            try:
                answer = self._api.call("ec2", "DescribeInstanceTopology", InstanceIds=batch)
            except (AccessDenied, InvalidConfiguration) as error:
                # Nodes work without these labels; a region may lack the operation (UnsupportedOperation).
                _log.warning("could not read the instance topology error=%r", str(error))
                self._silent_until = now + _ASKED_AGAIN
                return
            except NotFound:
                # One of them was deleted since it was listed; the next read of the others is soon.
                continue
            self._places |= {each: _Place((), now) for each in batch}
            for told in answer.get("Instances") or ():
                self._places[told["InstanceId"]] = _Place(tuple(told.get("NetworkNodes") or ()), now)

    def _is_to_be_asked(self, id: str, now: float) -> bool:
        place = self._places.get(id)
        return place is None or (not place.nodes and place.at + _UNTOLD <= now)


def _zone(instance: Ec2Instance) -> str:
    return str(instance["Placement"]["AvailabilityZone"])

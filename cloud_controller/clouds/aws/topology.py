"""Where in AWS a machine stands, beyond its zone's name: the zone's id, which is the same in every account, and its
place in the network of racks, which AWS tells for the types that are bought for it.
"""

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

ZONE_ID_LABEL = "topology.k8s.aws/zone-id"
NETWORK_LABEL = "topology.k8s.aws/network-node-layer-"
"""Followed by 1 for the layer furthest from the machine, 2 for the next, and so on."""

BATCH = 100
"""Machines whose place in the network EC2 tells at once."""
_UNTOLD = 300.0
"""Seconds after which is asked again for a machine that AWS told nothing of: it may only have begun to run."""
_ASKED_AGAIN = 3600.0
"""Seconds after which is asked again where the right was missing, or the region did not have it."""

Ec2Instance = Mapping[str, Any]
"""An instance as EC2 describes it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Place:
    """The network nodes above one machine, the furthest first; none: AWS did not tell at `at`."""

    nodes: tuple[str, ...]
    at: float


class Topology:
    """Labels of machines; what does not change is asked for once. Safe to share between threads."""

    def __init__(self, api: Api, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._lock = threading.Lock()
        self._types = re.compile(api.config.topology_types)
        self._zone_ids: dict[str, str] = {}
        self._places: dict[str, _Place] = {}
        self._silent_until = 0.0

    def labels(self, instances: Sequence[Ec2Instance]) -> dict[str, dict[str, str]]:
        """The labels of each of these machines, by its id. Raises CloudError where zones are not told."""
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
        """Keep only what is known of these machines: they are all there are."""
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
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            try:
                answer = self._api.call("ec2", "DescribeInstanceTopology", InstanceIds=batch)
            except (AccessDenied, InvalidConfiguration) as error:
                # Nodes can do without; a region may not have it (UnsupportedOperation).
                _log.warning("could not read the instance topology error=%r", str(error))
                self._silent_until = now + _ASKED_AGAIN
                return
            except NotFound:
                # One of them has gone since it was listed; the next look at the others is soon.
                continue
            self._places |= {each: _Place((), now) for each in batch}
            for told in answer.get("Instances") or ():
                self._places[told["InstanceId"]] = _Place(tuple(told.get("NetworkNodes") or ()), now)

    def _is_to_be_asked(self, id: str, now: float) -> bool:
        place = self._places.get(id)
        return place is None or (not place.nodes and place.at + _UNTOLD <= now)


def _zone(instance: Ec2Instance) -> str:
    return str(instance["Placement"]["AvailabilityZone"])

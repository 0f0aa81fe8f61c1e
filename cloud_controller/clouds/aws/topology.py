"""Topology labels of machines: the zone's ID, which is the same in every account, and the network nodes of EC2's
instance topology."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cloud_controller.cloud import AccessDenied, InvalidConfiguration, NotFound
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.common.cache import Cache, Entries
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


class Topology:
    """Labels of machines; constant values are read once. Safe to share between threads."""

    def __init__(self, api: Api, cache: Cache) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._types = re.compile(api.config.topology_types)
        self._zone_ids: dict[str, str] = {}
        self._nodes: Entries[tuple[str, ...]] = Entries(cache, _UNTOLD)
        """The network nodes above each machine, the furthest first; none: AWS returned none."""
        self._silent: Entries[bool] = Entries(cache, _ASKED_AGAIN)
        """Under "": whether the permission or the operation is missing."""

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
                layers = enumerate(self._nodes.get(machine) or (), start=1)
                found[machine] = {
                    **({ZONE_ID_LABEL: zone_id} if zone_id else {}),
                    **{f"{NETWORK_LABEL}{layer}": node for layer, node in layers},
                }
            return found

    def forget_all_but(self, ids: Iterable[str]) -> None:
        """Drop all other machines: these are the only ones."""
        with self._lock:
            self._nodes.forget(*(self._nodes.all().keys() - {*ids}))

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
        if not self._silent.is_due(""):
            return
        ids = [instance["InstanceId"] for instance in instances if self._is_to_be_asked(instance["InstanceId"])]
        for batch in batches(ids, BATCH):
            try:
                answer = self._api.call("ec2", "DescribeInstanceTopology", InstanceIds=batch)
            except (AccessDenied, InvalidConfiguration) as error:
                # Nodes work without these labels; a region may lack the operation (UnsupportedOperation).
                _log.warning("could not read the instance topology error=%r", str(error))
                self._silent.put("", value=True, anew=True)
                return
            except NotFound:
                # One of them was deleted since it was listed; the next read of the others is soon.
                continue
            told = {each["InstanceId"]: tuple(each.get("NetworkNodes") or ()) for each in answer.get("Instances") or ()}
            for each in batch:
                self._nodes.put(each, told.get(each, ()), anew=True)

    def _is_to_be_asked(self, id: str) -> bool:
        return not self._nodes.get(id) and self._nodes.is_due(id)


def _zone(instance: Ec2Instance) -> str:
    return str(instance["Placement"]["AvailabilityZone"])

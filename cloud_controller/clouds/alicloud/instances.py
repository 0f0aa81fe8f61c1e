"""ECS instances as the machines behind nodes: listed by the cluster's tags, described in batches of 100."""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import orjson

from cloud_controller.cloud import (
    AccessDenied,
    Instance,
    InstanceRef,
    InstanceState,
    InvalidConfiguration,
    NodeAddress,
    NotFound,
    Unavailable,
)
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.alicloud.config import Config
from cloud_controller.clouds.alicloud.errors import error_code
from cloud_controller.clouds.alicloud.names import ACK_TAG
from cloud_controller.clouds.alicloud.provider_ids import is_left_alone, machine_id, provider_id
from cloud_controller.clouds.common.cache import Cache, Entries
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.clouds.common.node_names import by_node_name
from cloud_controller.kube import Object
from cloud_controller.load_balancers.model import CLUSTER_TAG

_log = logging.getLogger(__name__)

EcsInstance = Mapping[str, Any]

BATCH = 100
"""The most IDs in one call, and the largest page."""
_NODE_POOL_TAG = "ack.alibabacloud.com/nodepool-id"

_STATES = {
    "Pending": InstanceState.PENDING,
    "Starting": InstanceState.PENDING,
    "Running": InstanceState.RUNNING,
    # They exist, but run nothing.
    "Stopping": InstanceState.STOPPED,
    "Stopped": InstanceState.STOPPED,
}
_GONE = "InvalidInstanceId.NotFound"

_NAMES_KEPT = 20.0
"""Seconds for which the names in a list stay valid: far less than the time in which a machine can end, and another one
with its name boot and register."""
_SEEN_KEPT = 600.0
"""Seconds for which a machine that was seen counts as existing for `missing`."""


class EcsInstances:
    """The machines of one cluster. Safe to share between threads."""

    def __init__(self, client: Client, config: Config, cache: Cache) -> None:
        self._client = client
        self._config = config
        self._seen: Entries[str] = Entries(cache, _SEEN_KEPT)
        """The primary network interface of each machine seen, "" if unknown. It never changes."""
        self._gone: set[str] = set()
        """Machines that ECS has said not to exist: IDs are not used again."""
        self._listing: Entries[Sequence[EcsInstance]] = Entries(cache, _NAMES_KEPT)

    def list(self) -> Sequence[Instance]:
        """Every machine with the cluster's tag, ACK's or ours. ECS does not list released machines."""
        found: dict[str, EcsInstance] = {}
        for key in (CLUSTER_TAG, ACK_TAG):
            for each in self._pages(Tag=[{"Key": key, "Value": self._config.cluster_id}]):
                found[each["InstanceId"]] = each
        self._seen.forget(*({each["InstanceId"] for each in self._listing.get("") or ()} - found.keys()))
        self._listing.put("", [*found.values()], anew=True)
        known = [each for each in found.values() if each["Status"] in _STATES]
        for each in found.values():
            if each["Status"] not in _STATES:
                _log.warning("left out a machine id=%s unknown_state=%r", each["InstanceId"], each["Status"])
        return [self._instance(each) for each in known]

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        """Each machine, by ID or, for a node without one, by name among the cluster's machines.

        None: ECS says that it does not exist. Raises InvalidConfiguration for the provider ID of another cloud or
        region (None would delete the node), and Conflict if two machines have a node's name.
        """
        wanted = {ref: machine_id(ref, self._config.region) for ref in refs}
        by_id = self._by_id({each for each in wanted.values() if each is not None})
        by_name = self._by_name({ref.node_name for ref, each in wanted.items() if each is None})
        return {ref: by_name.get(ref.node_name) if each is None else by_id.get(each) for ref, each in wanted.items()}

    def leaves_alone(self, node: Object) -> bool:
        """See `Selective.leaves_alone`."""
        return is_left_alone(node)

    def missing(self, ids: Collection[str]) -> frozenset[str]:
        """Which of these machines certainly do not exist. Those seen lately are not asked for again."""
        unknown = {each for each in ids if self._seen.is_due(each)}
        return frozenset(each for each in unknown - self._found(unknown).keys() if self._is_surely_gone(each))

    def primary_interfaces(self, ids: Collection[str]) -> Mapping[str, str]:
        """The primary network interface of each machine that has one."""
        self._existing({each for each in ids if not self._seen.get(each)})
        return {each: interface for each in ids if (interface := self._seen.get(each))}

    def _by_id(self, ids: Collection[str]) -> dict[str, Instance]:
        return {each: self._instance(instance) for each, instance in self._existing(ids).items()}

    def _existing(self, ids: Collection[str]) -> dict[str, EcsInstance]:
        """The machines that exist. Raises InvalidConfiguration for one that this key may not see."""
        found = self._found(ids)
        for absent in {*ids} - found.keys():
            try:
                gone = self._is_gone(absent)
            except AccessDenied as error:
                # Of this machine alone, such as one of another account: the caller finds it, and goes on with the rest.
                raise InvalidConfiguration(f"machine {absent}", str(error)) from error
            if not gone:
                raise Unavailable(f"Alibaba Cloud: machine {absent} exists, but DescribeInstances does not return it")
        return found

    def _found(self, ids: Collection[str]) -> dict[str, EcsInstance]:
        return {
            each["InstanceId"]: each
            for some in batches(sorted(ids), BATCH)
            for each in self._pages(InstanceIds=orjson.dumps(some).decode())
        }

    def _is_gone(self, id: str) -> bool:
        """Whether ECS says that this machine does not exist.

        Its absence from an answer to many IDs is no proof: lists lag, and they leave out what the caller may not see.
        """
        if id in self._gone:
            return True
        try:
            self._client.call("ecs", "DescribeInstanceAttribute", {"InstanceId": id})
        except NotFound as error:
            if error_code(error) != _GONE:
                raise
            self._seen.forget(id)
            self._gone.add(id)
            return True
        self._see(id)
        return False

    def _is_surely_gone(self, id: str) -> bool:
        """As `_is_gone`; not so of a machine that this key may not see, which is somebody else's."""
        try:
            return self._is_gone(id)
        except AccessDenied as error:
            _log.warning("could not read a machine id=%s error=%r", id, str(error))
            self._see(id)
            return False

    def _by_name(self, names: Collection[str]) -> dict[str, Instance]:
        """The cluster's machines with these names: `REGION.IP` as ACK names nodes, a host name or an instance name."""
        addresses = {name: ip for name in names if (ip := self._address_in(name))}
        found: dict[str, EcsInstance] = {}
        for some in batches(sorted(addresses), BATCH):
            asked = orjson.dumps([addresses[name] for name in some]).decode()
            more = {"InstanceNetworkType": "vpc", "VpcId": self._config.vpc_id}
            of_ip = {ip: each for each in self._pages(PrivateIpAddresses=asked, **more) for ip in _private_ips(each)}
            for name in some:
                if (each := of_ip.get(addresses[name])) and self._is_of_cluster(each):
                    found[name] = each
        if others := {*names} - found.keys():
            if self._listing.is_due("") or others - self._named(others).keys():
                self.list()
            found |= self._named(others)
        return {name: self._instance(each) for name, each in found.items()}

    def _address_in(self, name: str) -> str | None:
        try:
            return str(ipaddress.IPv4Address(name.removeprefix(f"{self._config.region}.")))
        except ValueError:
            return None

    def _is_of_cluster(self, instance: EcsInstance) -> bool:
        tags = _tags(instance)
        return self._config.cluster_id in (tags.get(CLUSTER_TAG), tags.get(ACK_TAG))

    def _pages(self, **asked: object) -> Iterator[EcsInstance]:
        parameters = {**asked, "MaxResults": BATCH, "AdditionalAttributes": ["NETWORK_PRIMARY_ENI_IP"]}
        for each in self._client.pages("ecs", "DescribeInstances", parameters, "Instances.Instance"):
            self._see(each["InstanceId"], _primary(each).get("NetworkInterfaceId"))
            yield each

    def _see(self, id: str, interface: str | None = None) -> None:
        with self._seen.cache.lock:
            self._seen.put(id, interface or self._seen.get(id) or "", anew=True)

    def _named(self, names: Collection[str]) -> dict[str, EcsInstance]:
        return _named(self._listing.get("") or (), names)

    def _instance(self, instance: EcsInstance) -> Instance:
        machine, zone, region = instance["InstanceId"], instance["ZoneId"], instance["RegionId"]
        if instance["Status"] not in _STATES:
            # Of this machine alone, too.
            raise InvalidConfiguration(
                f"machine {machine}", f"state {instance['Status']!r} is unknown", ", ".join(_STATES)
            )
        return Instance(
            id=machine,
            provider_id=provider_id(region, zone, machine, self._config.provider_id_format),
            name=instance.get("HostName") or instance.get("InstanceName") or machine,
            type=instance["InstanceType"],
            zone=zone,
            region=region,
            state=_STATES[instance["Status"]],
            addresses=tuple(_addresses(instance)),
            additional_labels=dict(_labels(instance)),
            tags=_tags(instance),
            created_at=datetime.fromisoformat(made) if (made := instance.get("CreationTime")) else None,
            host_names=tuple(_called(instance, "InstanceName")),
        )


def _named(instances: Sequence[EcsInstance], names: Collection[str]) -> dict[str, EcsInstance]:
    """The machine of each node: host names, by default `iZ…Z`, take precedence. Raises Conflict if two are one's."""
    found: dict[str, EcsInstance] = {}
    for key in ("HostName", "InstanceName"):
        left = {*names} - found.keys()
        found |= by_node_name(left, instances, partial(_called, key=key), lambda each: str(each["InstanceId"]))
    return found


def _called(instance: EcsInstance, key: str) -> list[str]:
    return [name] if (name := instance.get(key)) else []


def _addresses(instance: EcsInstance) -> Iterator[NodeAddress]:
    """Without a host name: the node's own stays, which need not be the machine's."""
    for ip in _private_ips(instance):
        yield NodeAddress("InternalIP", ip)
    for each in _inner(_primary(instance), "Ipv6Sets", "Ipv6Set"):
        yield NodeAddress("InternalIP", each["Ipv6Address"])
    for ip in _inner(instance, "PublicIpAddress", "IpAddress"):
        yield NodeAddress("ExternalIP", ip)
    if elastic := (instance.get("EipAddress") or {}).get("IpAddress"):
        yield NodeAddress("ExternalIP", elastic)


def _private_ips(instance: EcsInstance) -> Sequence[str]:
    return _inner(instance.get("VpcAttributes") or {}, "PrivateIpAddress", "IpAddress")


def _primary(instance: EcsInstance) -> Mapping[str, Any]:
    interfaces = _inner(instance, "NetworkInterfaces", "NetworkInterface")
    return next((each for each in interfaces if each.get("Type") == "Primary"), {})


def _labels(instance: EcsInstance) -> Iterator[tuple[str, str]]:
    type_family = re.match(r"ecs\.[^.]+", instance["InstanceType"])
    labels = {
        "alibabacloud.com/nodepool-id": _tags(instance).get(_NODE_POOL_TAG),
        "alibabacloud.com/instance-type-family": instance.get("InstanceTypeFamily") or (type_family and type_family[0]),
        "node.alibabacloud.com/instance-charge-type": instance.get("InstanceChargeType"),
        "node.alibabacloud.com/spot-strategy": instance.get("SpotStrategy"),
    }
    return ((label, value) for label, value in labels.items() if value)


def _tags(instance: EcsInstance) -> Mapping[str, str]:
    return {each["TagKey"]: each.get("TagValue") or "" for each in _inner(instance, "Tags", "Tag")}


def _inner(of: Mapping[str, Any], outer: str, inner: str) -> Sequence[Any]:
    return (of.get(outer) or {}).get(inner) or ()

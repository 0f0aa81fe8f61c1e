"""EC2 instances as the machines behind nodes: listed in pages, described in batches."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from cloud_controller.cloud import CloudError, Instance, InstanceRef, InstanceState, NotFound, node_name
from cloud_controller.clouds.aws import fargate
from cloud_controller.clouds.aws.addresses import addresses
from cloud_controller.clouds.aws.client import Api, error_code
from cloud_controller.clouds.aws.provider_ids import Identity, identity, is_fargate, provider_id
from cloud_controller.clouds.aws.tags import tags_of
from cloud_controller.clouds.aws.topology import Ec2Instance, Topology
from cloud_controller.clouds.common.cache import Cache, Entries
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.clouds.common.node_names import by_node_name

PAGE = 1000
"""The largest page of instances."""
FILTER_VALUES = 200
"""The most values in one filter."""

_STATES = {
    "pending": InstanceState.PENDING,
    "running": InstanceState.RUNNING,
    # They exist, but run nothing.
    "shutting-down": InstanceState.STOPPED,
    "stopping": InstanceState.STOPPED,
    "stopped": InstanceState.STOPPED,
    "terminated": InstanceState.TERMINATED,
}
_ALIVE = [state for state in _STATES if state != "terminated"]
_INSTANCE_ID = re.compile(r"i-[0-9a-f]+")

_NAMES_KEPT = 20.0
"""Seconds for which the names in a list stay valid: far less than the time in which a machine can end, its address
pass to another one, and that one boot and register."""
_MANY_NAMES = 50
"""From this many names on, a list is cheaper: more names usually follow."""


class AwsInstances:
    """The machines of one cluster."""

    def __init__(self, api: Api, vpc_id: Callable[[], str], cache: Cache) -> None:
        """`vpc_id` is called if a node is a Fargate task."""
        self._api = api
        self._vpc_id = vpc_id
        self._topology = Topology(api, cache)
        self._checking: dict[str, bool] = {}
        self._listing: Entries[Sequence[Instance]] = Entries(cache, _NAMES_KEPT)

    def list(self) -> Sequence[Instance]:
        """Every machine with the cluster's tag; terminated ones for about an hour."""
        found = [*self._filtered({"tag-key": [self._api.config.cluster_tag]})]
        self._topology.forget_all_but(each["InstanceId"] for each in found)
        self._checking = {}
        listed = self._instances(found)
        self._listing.put("", listed, anew=True)
        return listed

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        """Each machine, by ID or, for a node without one, by name among the cluster's machines.

        None: terminated, or unknown to AWS. Raises InvalidConfiguration for the provider ID of another cloud or
        region (None would delete the node), and Conflict if two machines have a node's name.
        """
        wanted = {ref: identity(ref, self._api.region) for ref in refs}
        known = [each for each in wanted.values() if each is not None]
        by_id = self._by_id({each.instance_id for each in known if each.instance_id is not None})
        tasks = fargate.describe(self._api, self._vpc_id, {each.fargate for each in known if each.fargate is not None})
        by_name = self._by_name({ref.node_name for ref, each in wanted.items() if each is None})

        def answer(ref: InstanceRef, of: Identity | None) -> Instance | None:
            if of is None:
                return by_name.get(ref.node_name)
            return by_id.get(of.instance_id) if of.instance_id is not None else tasks.get(of.fargate or "")

        return {ref: answer(ref, of) for ref, of in wanted.items()}

    def is_unlisted(self, node: Mapping[str, Any]) -> bool:
        """See `Unlisting.is_unlisted`: a Fargate task has no instance, and its network interface no tag."""
        return is_fargate(node["spec"].get("providerID") or "")

    def with_source_dest_check(self, ids: Collection[str]) -> Sequence[str]:
        """The instances with source/destination checks, which drop pod traffic (EC2's default).

        Uses the last known state; unknown instances are read in one batch.
        """
        unknown = {*ids} - self._checking.keys()
        self._remember([*self._filtered_in_batches("instance-id", unknown)])
        return sorted(each for each in {*ids} if self._checking.get(each, True))

    def source_dest_check_is_off(self, id: str) -> None:
        """Record that this process turned the check off."""
        self._checking[id] = False

    def _by_id(self, ids: Collection[str]) -> dict[str, Instance]:
        # A filter omits missing instances; by ID, one missing instance fails the whole call.
        found = {each["InstanceId"]: each for each in self._filtered_in_batches("instance-id", ids)}
        found |= {each["InstanceId"]: each for each in self._confirmed(set(ids) - found.keys())}
        return {each.id: each for each in self._instances([*found.values()]) if _exists(each)}

    def _confirmed(self, ids: set[str]) -> Iterator[Ec2Instance]:
        """The instances that exist after all: only a call by ID proves, and names, a missing one."""
        while ids:
            try:
                yield from _flat(self._api.call("ec2", "DescribeInstances", InstanceIds=sorted(ids))["Reservations"])
            except NotFound as error:
                gone = ids & {*_INSTANCE_ID.findall(str(error))}
                if error_code(error) != "InvalidInstanceID.NotFound" or not gone:
                    raise CloudError(
                        f"AWS: one of the instances {', '.join(sorted(ids))} does not exist, but the"
                        " error does not name it"
                    ) from error
                ids = ids - gone
                continue
            return

    def _by_name(self, names: Collection[str]) -> dict[str, Instance]:
        """Machines by name. For many names one list replaces hundreds of filtered reads; few names are always
        filtered."""
        if len(names) < _MANY_NAMES:
            return self._asked_by_name(names)
        pages = max(1, math.ceil(len(self._listing.get("") or ()) / PAGE))
        if len(names) >= _MANY_NAMES * pages and self._listing.is_due(""):
            self.list()
        found = {} if self._listing.is_due("") else _named(self._listing.get("") or (), names)
        return found | self._asked_by_name({*names} - found.keys())

    def _asked_by_name(self, names: Collection[str]) -> dict[str, Instance]:
        """EC2 makes private DNS names, in lower case: its filter, which is exact, finds them all."""
        more = {"tag-key": [self._api.config.cluster_tag], "instance-state-name": _ALIVE}
        found = self._instances([*self._filtered_in_batches("private-dns-name", names, more)])
        return by_node_name(names, found, lambda each: [each.name], lambda each: each.id)

    def _filtered_in_batches(
        self, name: str, values: Collection[str], more: Mapping[str, Sequence[str]] | None = None
    ) -> Iterator[Ec2Instance]:
        for some in batches(sorted(values), FILTER_VALUES):
            yield from self._filtered({name: some, **(more or {})})

    def _filtered(self, filters: Mapping[str, Sequence[str]]) -> Iterator[Ec2Instance]:
        asked = [{"Name": name, "Values": [*values]} for name, values in filters.items()]
        return _flat(self._api.pages("ec2", "DescribeInstances", "Reservations", Filters=asked, MaxResults=PAGE))

    def _instances(self, found: Sequence[Ec2Instance]) -> Sequence[Instance]:
        self._remember(found)
        labels = self._topology.labels(found)
        return [self._instance(each, labels[each["InstanceId"]]) for each in found]

    def _remember(self, found: Iterable[Ec2Instance]) -> None:
        for each in found:
            self._checking[each["InstanceId"]] = bool(each.get("SourceDestCheck", True))

    def _instance(self, instance: Ec2Instance, labels: Mapping[str, str]) -> Instance:
        machine, zone = instance["InstanceId"], instance["Placement"]["AvailabilityZone"]
        state = instance["State"]["Name"]
        if state not in _STATES:
            raise CloudError(f"AWS: instance {machine} is in the unknown state {state!r}")
        return Instance(
            id=machine,
            provider_id=provider_id(zone, machine),
            # Terminated instances have no name.
            name=instance.get("PrivateDnsName") or machine,
            type=instance["InstanceType"],
            zone=zone,
            region=self._api.region,
            state=_STATES[state],
            addresses=addresses(instance, self._api.config.node_ip_families),
            additional_labels=labels,
            tags=tags_of(instance),
            created_at=instance.get("LaunchTime"),
        )


def _named(listed: Iterable[Instance], names: Collection[str]) -> dict[str, Instance]:
    """The machines with a unique name among those that have not begun to terminate."""
    alive = [each for each in listed if each.state in (InstanceState.PENDING, InstanceState.RUNNING)]
    count = Counter(node_name(each.name) for each in alive)
    return {name: each for each in alive if (name := node_name(each.name)) in names and count[name] == 1}


def _exists(instance: Instance) -> bool:
    return instance.state is not InstanceState.TERMINATED


def _flat(reservations: Iterable[Mapping[str, Any]]) -> Iterator[Ec2Instance]:
    for reservation in reservations:
        yield from reservation["Instances"]

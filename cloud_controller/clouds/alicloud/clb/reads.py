"""Reads classic load balancers in few calls: lists by tag, listeners of ten at once, groups one by one (cached).

A load balancer is the cluster's by its tags, or by those of a listener or group on it. What is on the cluster's own
load balancers is found by tags and by their listeners; of a reused one, all groups are listed, because listeners of
others may lead to them, and of a few that are asked for by ID, because that takes fewer calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.alicloud.clb.build import EIP, EXTERNAL_IP_TAG
from cloud_controller.clouds.alicloud.clb.listener_fields import attributes_of
from cloud_controller.clouds.alicloud.clb.memory import Memory
from cloud_controller.clouds.alicloud.clb.wire import Group, balancer_attributes, state_of
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.alicloud.tags import tags_of
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls, batches
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    SERVICE_UID_TAG,
    HealthCheck,
    Ingress,
    Listener,
    LoadBalancerModel,
    ObservedLoadBalancer,
    Pool,
)

Shown = dict[str, Any]

_FEW = 3
"""Up to this many Services are read by their own tags, more by the cluster's."""
_A_PAGE = 100
_A_CALL = 10
"""The most load balancers in one list by ID."""
_UNCHECKED = HealthCheck("NONE")


class Reads:
    """Reads of one cluster's classic load balancers. Safe to share between threads."""

    def __init__(self, client: Client, cluster_id: str, memory: Memory, concurrently: ConcurrentCalls) -> None:
        self._client = client
        self._cluster_id = cluster_id
        self._memory = memory
        self._concurrently = concurrently

    def read(self, service_uids: Collection[str] | None, ids: Collection[str]) -> list[ObservedLoadBalancer]:
        """Those with this cluster's tag on them or a part, or those of these Services; and those with these IDs."""
        tags = self._tags(service_uids)
        found: list[list[Any]] = self._concurrently(
            partial(list_, tag)
            for tag in tags
            for list_ in (self._balancers, self._listeners_of_tag, self._tagged_groups)
        )
        balancers = {each["LoadBalancerId"]: each for part in found[::3] for each in part}
        listed = {*balancers}
        group_ids = {each for part in found[2::3] for each in part}
        groups = self._groups(group_ids)
        elsewhere = {each["LoadBalancerId"] for part in found[1::3] for each in part}
        elsewhere |= {group.load_balancer_id for group in groups.values()}
        balancers |= self._by_id(({*ids} | elsewhere) - listed)
        own = {lb_id for lb_id, shown in balancers.items() if _tags(shown).get(CLUSTER_TAG) == self._cluster_id}
        if len(own - listed) > _FEW:
            groups |= self._groups(self._tagged_groups((CLUSTER_TAG, self._cluster_id)))
            listed |= own
        listeners = self._listeners_of(balancers)
        lead_to = {each["VServerGroupId"] for part in listeners.values() for each in part if each.get("VServerGroupId")}
        named = {lb_id: self._listed_groups(lb_id) for lb_id in balancers if lb_id not in listed}
        ours = {group.id for part in named.values() for group in part.values() if CLUSTER_TAG in group.tags}
        groups |= self._groups(
            (lead_to | ours) - {each for part in named.values() for each in part if each not in ours}
        )
        return [
            lb
            for lb_id, shown in balancers.items()
            for lb in [self._observed(shown, listeners.get(lb_id, []), groups, named.get(lb_id, {}))]
            if service_uids is None or lb_id in ids or {owner.uid for owner in lb.owners} & {*service_uids}
        ]

    # -------------------------------------------------------------------------------------------------------- lists

    def _tags(self, service_uids: Collection[str] | None) -> list[tuple[str, str]]:
        if service_uids is not None and len(service_uids) <= _FEW:
            return [(SERVICE_UID_TAG, uid) for uid in sorted(service_uids)]
        return [(CLUSTER_TAG, self._cluster_id)]

    def _balancers(self, tag: tuple[str, str]) -> list[Shown]:
        asked = {"Tag": _tag(tag), "PageSize": _A_PAGE, "PageNumber": 1}
        return [*self._client.pages("slb", "DescribeLoadBalancers", asked, "LoadBalancers.LoadBalancer")]

    def _listeners_of_tag(self, tag: tuple[str, str]) -> list[Shown]:
        return [*self._listeners({"Tag": _tag(tag)})]

    def _tagged_groups(self, tag: tuple[str, str]) -> list[str]:
        asked = {"ResourceType": "vservergroup", "Tag": _tag(tag)}
        found = self._client.pages("slb", "ListTagResources", asked, "TagResources.TagResource")
        return [each["ResourceId"] for each in found]

    def _by_id(self, ids: Collection[str]) -> dict[str, Shown]:
        if not ids:
            return {}
        found: dict[str, Shown] = {}
        if len(ids) > _FEW:
            for part in batches(sorted(ids), _A_CALL):
                asked = {"LoadBalancerId": ",".join(part), "PageSize": _A_PAGE, "PageNumber": 1}
                listed = self._client.pages("slb", "DescribeLoadBalancers", asked, "LoadBalancers.LoadBalancer")
                found |= {each["LoadBalancerId"]: each for each in listed}
        # Lists may lag behind; the object itself does not.
        missing = sorted({*ids} - found.keys())
        singles = self._concurrently(partial(self._single, each) for each in missing)
        return found | {each["LoadBalancerId"]: each for each in singles if each is not None}

    def _single(self, id: str) -> Shown | None:
        try:
            return self._client.call("slb", "DescribeLoadBalancerAttribute", {"LoadBalancerId": id})
        except NotFound:
            return None

    def _listeners_of(self, ids: Iterable[str]) -> dict[str, list[Shown]]:
        found: dict[str, list[Shown]] = {}
        parts = self._concurrently(
            partial(self._listed, {"LoadBalancerId": [*part]}) for part in batches(sorted(ids), _A_CALL)
        )
        for each in (each for part in parts for each in part):
            found.setdefault(each["LoadBalancerId"], []).append(each)
        return found

    def _listed(self, asked: Mapping[str, Any]) -> list[Shown]:
        return [*self._listeners(asked)]

    def _listeners(self, asked: Mapping[str, Any]) -> Iterator[Shown]:
        return self._client.pages("slb", "DescribeLoadBalancerListeners", {**asked, "MaxResults": _A_PAGE}, "Listeners")

    def _listed_groups(self, lb_id: str) -> dict[str, Group]:
        """All groups of a load balancer, without backends."""
        try:
            answer = self._client.call("slb", "DescribeVServerGroups", {"LoadBalancerId": lb_id})
        except NotFound:
            return {}
        shown = (answer.get("VServerGroups") or {}).get("VServerGroup") or []
        return {
            each["VServerGroupId"]: Group(
                each["VServerGroupId"],
                lb_id,
                each.get("VServerGroupName") or "",
                _tags(each),
            )
            for each in shown
        }

    def _groups(self, ids: Collection[str]) -> dict[str, Group]:
        def read(id: str) -> Mapping[str, object]:
            return self._client.call("slb", "DescribeVServerGroupAttribute", {"VServerGroupId": id})

        return self._memory.read_groups(ids, read, self._concurrently)

    # -------------------------------------------------------------------------------------------- one load balancer

    def _observed(
        self, shown: Shown, listeners: Sequence[Shown], groups: Mapping[str, Group], named: Mapping[str, Group]
    ) -> ObservedLoadBalancer:
        lb_id = shown["LoadBalancerId"]
        own = {each.id: each for each in {**named, **groups}.values() if each.load_balancer_id == lb_id}
        used = {each.get("VServerGroupId") for each in listeners}
        names = _distinct_names(own, used)
        self._memory.name_groups(lb_id, {name: group_id for group_id, name in names.items()})
        pools = tuple(
            Pool(names[group.id], _UNCHECKED, tuple(each.member for each in group.servers), tags=group.tags)
            for group in own.values()
        )
        found = sorted((self._listener(each, names) for each in listeners), key=lambda each: each.key)
        state, reason = state_of(shown)
        tags = _tags(shown)
        address = (self._elastic_ip(lb_id) if tags.get(EXTERNAL_IP_TAG) == EIP else None) or shown.get("Address")
        return ObservedLoadBalancer(
            id=lb_id,
            state=state,
            state_reason=reason,
            model=LoadBalancerModel(
                name=shown.get("LoadBalancerName") or "",
                attributes=balancer_attributes(shown),
                listeners=tuple(found),
                pools=pools,
                tags=tags,
            ),
            ingress=(Ingress(ip=address),) if address else (),
            created_at=shown.get("CreateTime") or "",
            network=shown.get("VpcId") or None,
        )

    def _listener(self, shown: Shown, names: Mapping[str, str]) -> Listener:
        attributes = attributes_of(shown)
        port, group = int(shown["ListenerPort"]), shown.get("VServerGroupId") or ""
        if attributes["protocol"] == "https":
            further = self.certificates(shown["LoadBalancerId"], port)
            attributes["domain_extensions"] = tuple(sorted(f"{name}:{cert}" for name, (_, cert) in further.items()))
        return Listener(
            protocol="UDP" if attributes["protocol"] == "udp" else "TCP",
            port=port,
            pool="" if attributes.get("forward_port") else names.get(group, group),
            attributes=attributes,
            tags=tags_of(shown.get("Tags") or []),
        )

    def certificates(self, lb_id: str, port: int) -> Mapping[str, tuple[str, str]]:
        """The further certificates of an HTTPS listener: ID and certificate by domain."""

        def read() -> Mapping[str, tuple[str, str]]:
            asked = {"LoadBalancerId": lb_id, "ListenerPort": port}
            answer = self._client.call("slb", "DescribeDomainExtensions", asked)
            shown = (answer.get("DomainExtensions") or {}).get("DomainExtension") or []
            return {each["Domain"]: (each["DomainExtensionId"], each["ServerCertificateId"]) for each in shown}

        return self._memory.certificates.fetch(f"{lb_id}/{port}", read)

    def _elastic_ip(self, lb_id: str) -> str | None:
        asked = {"AssociatedInstanceType": "SlbInstance", "AssociatedInstanceId": lb_id}
        answer = self._client.call("vpc", "DescribeEipAddresses", asked)
        shown = (answer.get("EipAddresses") or {}).get("EipAddress") or []
        return next((each["IpAddress"] for each in shown), None)


def _distinct_names(groups: Mapping[str, Group], used: Collection[str | None]) -> dict[str, str]:
    """A name for each group. Of several with one name, which an interrupted creation leaves, a used one has it."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for group in sorted(groups.values(), key=lambda each: (each.id not in used, each.id)):
        found[group.id] = group.name if group.name not in taken else f"{group.name} ({group.id})"
        taken.add(found[group.id])
    return found


def _tags(shown: Shown) -> dict[str, str]:
    return tags_of((shown.get("Tags") or {}).get("Tag") or [])


def _tag(tag: tuple[str, str]) -> list[dict[str, str]]:
    return [{"Key": tag[0], "Value": tag[1]}]

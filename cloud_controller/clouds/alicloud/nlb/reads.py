"""Reads NLBs: lists in a few calls, and servers and certificates, which only single calls return, when they are due.

The lists show everything else, so a change made by hand is seen by the next read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.alicloud.nlb.api import Api
from cloud_controller.clouds.alicloud.nlb.jobs import GATHER
from cloud_controller.clouds.alicloud.nlb.memory import Known, KnownGroup, KnownListener, Memory
from cloud_controller.clouds.alicloud.nlb.names import LOAD_BALANCER_TAG, OWN_GROUP_TAG, POOL_TAG
from cloud_controller.clouds.alicloud.nlb.observed import left_behind, observed
from cloud_controller.clouds.alicloud.nlb.own_group import OwnGroup, OwnGroups
from cloud_controller.clouds.alicloud.nlb.wire import Params, Server, View, listener_of, pool_of, tags_of
from cloud_controller.clouds.alicloud.tags import tag_list
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls, batches
from cloud_controller.joined_requests import JoinedRequests
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_UID_TAG, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.taken_over import former_pools

_FEW = 3
"""Up to this many Services or load balancers are asked for one by one, more in lists of the cluster's."""
_IDS = 20
"""The most IDs in one call."""
_PAGE = 100
_WITHOUT_LISTENERS = ("Provisioning", "Deleting", "Deleted")


class NetworkReads:
    """Reads of one cluster's NLBs. Safe to share between threads."""

    def __init__(
        self,
        client: Api,
        cluster_id: str,
        memory: Memory,
        own_groups: OwnGroups,
        concurrently: ConcurrentCalls,
        at_work: Callable[[], int],
    ) -> None:
        self._client = client
        self._cluster_id = cluster_id
        self._memory = memory
        self._own_groups = own_groups
        self._concurrently = concurrently
        self._views_of = JoinedRequests(self._by_id, callers=at_work, gather=GATHER)

    def read(self, uids: Collection[str] | None, ids: Collection[str]) -> list[ObservedLoadBalancer]:
        """Those of the cluster, or of these Services, whole or in part; and those with these IDs, whosever they are."""
        since = self._memory.cache.moment()
        views, groups = self._lists(uids, ids)
        found = self._learn(views, groups, since)
        if uids is None:
            self._memory.keep_only(found, groups)
        seen = [observed(known, self._own_group(known)) for known in found.values()]
        left = {tags_of(group)[LOAD_BALANCER_TAG]: tags_of(group) for group in groups.values() if _is_part(group)}
        seen += [left_behind(lb_id, tags) for lb_id, tags in left.items() if lb_id not in views]
        return [lb for lb in seen if lb.id in ids or any(self._is_asked_for(each, uids) for each in lb.owners)]

    def known(self, lb_id: str) -> Known:
        """What is known of one. Raises NotFound if it does not exist."""
        known = self._memory.known.get(lb_id)
        if known is None:
            self.read((), [lb_id])
            known = self._memory.known.get(lb_id)
        if known is None:
            raise NotFound(f"there is no network load balancer {lb_id}")
        return known

    def view(self, lb_id: str) -> View | None:
        """The load balancer as it is now; None if it does not exist. Workers that ask at once share a list."""
        return self._views_of([lb_id]).get(lb_id)

    def groups_of(self, lb_id: str) -> dict[str, View]:
        """The server groups with the load balancer's tag, by ID."""
        return self._groups({"Tag": tag_list({LOAD_BALANCER_TAG: lb_id})})

    # -------------------------------------------------------------------------------------------------------- lists

    def _lists(self, uids: Collection[str] | None, ids: Collection[str]) -> tuple[dict[str, View], dict[str, View]]:
        """The load balancers and server groups by their IDs."""
        one_by_one = uids is not None and len(uids) <= _FEW and len(ids) <= _FEW
        tags = (
            [{SERVICE_UID_TAG: uid} for uid in sorted(uids or ())] if one_by_one else [{CLUSTER_TAG: self._cluster_id}]
        )
        listed = self._concurrently(
            [
                *(partial(self._views, {"Tag": tag_list(each)}) for each in tags),
                *(partial(self._groups, {"Tag": tag_list(each)}) for each in tags),
                *(partial(self.groups_of, each) for each in (sorted(ids) if one_by_one else ())),
            ]
        )
        views = {lb_id: view for each in listed[: len(tags)] for lb_id, view in each.items()}
        groups = {group_id: view for each in listed[len(tags) :] for group_id, view in each.items()}
        made = {lb_id for lb_id, uid in self._memory.made.fresh().items() if uids is None or uid in uids}
        parts = {tags_of(group)[LOAD_BALANCER_TAG] for group in groups.values() if _is_part(group)}
        self._memory.made.forget(*views)
        views |= self._by_id(({*ids} | made | parts) - views.keys())
        self._memory.shown(*groups)
        for group_id, group in self._memory.made_groups.fresh().items():
            if tags_of(group)[LOAD_BALANCER_TAG] in views:
                groups.setdefault(group_id, group)
        return views, groups

    def _views(self, params: Params) -> dict[str, View]:
        found = self._client.pages("nlb", "ListLoadBalancers", {**params, "MaxResults": _PAGE}, "LoadBalancers")
        return {str(each["LoadBalancerId"]): each for each in found if each.get("LoadBalancerStatus") != "Deleted"}

    def _groups(self, params: Params) -> dict[str, View]:
        found = self._client.pages("nlb", "ListServerGroups", {**params, "MaxResults": _PAGE}, "ServerGroups")
        return {str(each["ServerGroupId"]): each for each in found}

    def _by_id(self, ids: Collection[str]) -> dict[str, View]:
        found: dict[str, View] = {}
        if len(ids) > 1:
            calls = [partial(self._views, {"LoadBalancerIds": [*each]}) for each in batches(sorted(ids), _IDS)]
            found = {lb_id: view for each in self._concurrently(calls) for lb_id, view in each.items()}
        # What a list lacks may only not be in it yet.
        rest = sorted(set(ids) - found.keys())
        single = self._concurrently([partial(self._single, lb_id) for lb_id in rest])
        return found | {lb_id: view for lb_id, view in zip(rest, single, strict=True) if view is not None}

    def _single(self, lb_id: str) -> View | None:
        try:
            view = self._client.call("nlb", "GetLoadBalancerAttribute", {"LoadBalancerId": lb_id})
        except NotFound:
            return None
        return None if view.get("LoadBalancerStatus") == "Deleted" else view

    # ------------------------------------------------------------------------------------------------------ details

    def _learn(self, views: Mapping[str, View], groups: dict[str, View], since: int) -> dict[str, Known]:
        """Read listeners, servers and certificates; remember and return what is known of each load balancer."""
        serving = [lb_id for lb_id, view in views.items() if view.get("LoadBalancerStatus") not in _WITHOUT_LISTENERS]
        pages = self._concurrently([partial(self._listeners, each) for each in batches(sorted(serving), _IDS)])
        listeners = {str(view["ListenerId"]): view for page in pages for view in page}
        self._memory.shown(*listeners)
        for listener_id, view in self._memory.made_listeners.fresh().items():
            if view["LoadBalancerId"] in views:
                listeners.setdefault(listener_id, view)
        used = {str(view["ServerGroupId"]) for view in listeners.values() if view.get("ServerGroupId")}
        former = {each_id: former_pools(tags_of(view)) for each_id, view in (*listeners.items(), *groups.items())}
        unknown = sorted(used.union(*former.values()) - groups.keys())
        calls = [partial(self._groups, {"ServerGroupIds": [*each]}) for each in batches(unknown, _IDS)]
        others = {group_id: view for each in self._concurrently(calls) for group_id, view in each.items()}
        groups |= {group_id: view for group_id, view in others.items() if _is_part(view)}
        servers = self._servers(groups)
        certificates = self._certificates(listeners.values())
        found: dict[str, Known] = {}
        for lb_id, view in views.items():
            own = {gid: each for gid, each in groups.items() if tags_of(each).get(LOAD_BALANCER_TAG) == lb_id}
            on_it = {each_id: each for each_id, each in listeners.items() if each["LoadBalancerId"] == lb_id}
            if Owner.of_tags(tags_of(view)) is None:
                # The user's server groups: listeners that are taken over return to them.
                behind = {str(each.get("ServerGroupId")) for each in on_it.values()}
                behind = behind.union(*(former.get(each, ()) for each in (*on_it, *own)))
                own |= {group_id: each for group_id, each in others.items() if group_id in behind}
            pools = _pools(own, used, servers)
            names = {group.id: name for name, group in pools.items()}
            known = Known(view, {}, pools)
            for listener_id, each in on_it.items():
                pool = names.get(str(each.get("ServerGroupId")), str(each.get("ServerGroupId") or ""))
                listener = listener_of(each, pool, certificates.get(listener_id, ()))
                known = known.with_listener(listener.key, KnownListener(listener_id, listener))
            found[lb_id] = self._memory.known.read(lb_id, known, since)
        return found

    def _listeners(self, ids: Collection[str]) -> list[View]:
        params = {"LoadBalancerIds": [*ids], "MaxResults": _PAGE}
        found = self._client.pages("nlb", "ListListeners", params, "Listeners")
        return [each for each in found if each.get("ListenerStatus") not in ("Deleting", "Deleted")]

    def _servers(self, groups: Mapping[str, View]) -> dict[str, tuple[Server, ...]]:
        """The servers of each group; read only where the group's count shows a change, or the time has come."""
        memory, since = self._memory.servers, self._memory.cache.moment()
        known = {group_id: memory.get(group_id) or () for group_id in groups}
        due = [
            group_id
            for group_id, view in groups.items()
            if int(view.get("ServerCount") or 0) != len(known[group_id])
            or (view.get("ServerCount") and memory.is_due(group_id))
        ]
        for group_id, found in zip(
            due, self._concurrently([partial(self._servers_of, each) for each in due]), strict=True
        ):
            known[group_id] = memory.read(group_id, found, since)
        return known

    def _servers_of(self, group_id: str) -> tuple[Server, ...]:
        params = {"ServerGroupId": group_id, "MaxResults": _PAGE}
        found = self._client.pages("nlb", "ListServerGroupServers", params, "Servers")
        return tuple(Server.of_view(each) for each in found if each.get("Status") != "Removing")

    def _certificates(self, listeners: Iterable[View]) -> dict[str, tuple[str, ...]]:
        memory, since = self._memory.certificates, self._memory.cache.moment()
        tls = [str(view["ListenerId"]) for view in listeners if view.get("ListenerProtocol") == "TCPSSL"]
        due = [each for each in tls if memory.is_due(each)]
        found = self._concurrently([partial(self._certificates_of, each) for each in due])
        read = {each: memory.read(each, certificates, since) for each, certificates in zip(due, found, strict=True)}
        return {each: read[each] if each in read else memory.get(each) or () for each in tls}

    def _certificates_of(self, listener_id: str) -> tuple[str, ...]:
        params = {"ListenerId": listener_id, "CertType": "Server", "MaxResults": 50}
        found = self._client.pages("nlb", "ListListenerCertificates", params, "Certificates")
        return tuple(
            str(c["CertificateId"]) for c in found if not c.get("IsDefault") and c.get("Status") != "Diassociating"
        )

    def _is_asked_for(self, owner: Owner, uids: Collection[str] | None) -> bool:
        return owner.cluster_id == self._cluster_id if uids is None else owner.uid in uids

    def _own_group(self, known: Known) -> OwnGroup | None:
        return self._own_groups.of(known.id) if OWN_GROUP_TAG in known.tags else None


def _is_part(group: View) -> bool:
    """Whether a server group was made for a pool of a load balancer, and still has an owner."""
    tags = tags_of(group)
    return LOAD_BALANCER_TAG in tags and POOL_TAG in tags and Owner.of_tags(tags) is not None


def _pools(
    groups: Mapping[str, View], used: Collection[str], servers: Mapping[str, tuple[Server, ...]]
) -> dict[str, KnownGroup]:
    """The server group of each pool. Of two, made by processes that did not see each other's, the one in use counts;
    the other is a pool of its own, which no Service wants."""
    found: dict[str, KnownGroup] = {}
    for group_id, view in sorted(groups.items(), key=lambda each: (each[0] not in used, each[0])):
        by_key = {each.member.key: each for each in servers.get(group_id, ())}
        group = KnownGroup(group_id, pool_of(view, (each.member for each in by_key.values())), by_key)
        found[group.pool.name if group.pool.name not in found else group_id] = group
    return found

"""Reads load balancers with all their parts, in few calls, and remembers them.

A read of one whose view shows no change since (`updated_at`) costs one call: Octavia touches a load balancer whenever a
part of it is changed. While a change of ours is at work, its parts are known without a read.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence

from cloud_controller.cloud_errors import NotFound
from cloud_controller.clouds.openstack.client import OpenStackClient
from cloud_controller.clouds.openstack.octavia.topology import Subnet, Topology
from cloud_controller.clouds.openstack.octavia.wire import TOKEN_TAG, Known, View, describe, tags_of
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_UID_TAG

OCTAVIA, NEUTRON = "load-balancer", "network"
_FEW = 3
"""Up to this many load balancers are read one by one, more by lists of the whole project."""


class Reads:
    """The load balancers of one cluster, and those that annotations name. Safe to share between threads."""

    def __init__(self, client: OpenStackClient, cluster_id: str) -> None:
        self._client = client
        self._cluster_id = cluster_id
        self._lock = threading.Lock()
        self._known: dict[str, Known] = {}
        self._at_work: set[str] = set()
        self._tokens: dict[str, str] = {}
        self._made: dict[str, str] = {}
        """The UIDs of the Services of what this process made, by ID: a list may not show it yet."""

    def topology(self) -> Topology:
        """The networks that the project sees: two calls."""
        subnets = self._client.list(NEUTRON, "subnets", "subnets")
        external = self._client.list(NEUTRON, "networks", "networks", **{"router:external": "True"})
        names = {each["id"]: each.get("name") or "" for each in external}
        return Topology(tuple(Subnet.of(each) for each in subnets if each["ip_version"] == 4), names)

    def read(self, service_uids: Collection[str] | None, ids: Collection[str]) -> list[Known]:
        """See `LoadBalancers.read`."""
        views = {view["id"]: view for view in self._views(service_uids)}
        with self._lock:
            ids = {*ids, *(each for each, uid in self._made.items() if service_uids is None or uid in service_uids)}
        for each in sorted({*ids} - views.keys()):
            try:
                views[each] = self._client.get(OCTAVIA, f"lbaas/loadbalancers/{each}")["loadbalancer"]
            except NotFound:
                self.gone(each)
        stale = [view for view in views.values() if service_uids is None or not self._is_current(view)]
        for known in self._whole(stale):
            self.put(known)
        existing = [view for view in views.values() if view["provisioning_status"] != "DELETED"]
        return [self._updated(view) or next(self._whole([view])) for view in existing]

    def known(self, id: str) -> Known:
        """The load balancer as last read. Raises NotFound."""
        with self._lock:
            found = self._known.get(id)
        if found is None:
            self.read((), [id])
            with self._lock:
                found = self._known.get(id)
        if found is None:
            raise NotFound(f"load balancer {id} no longer exists")
        return found

    def put(self, known: Known) -> None:
        """Remember it as it was just read."""
        with self._lock:
            self._known[known.view["id"]] = known
            self._at_work.discard(known.view["id"])

    def made(self, known: Known, token: str) -> None:
        """A creation of ours has been accepted."""
        self.put(known)
        with self._lock:
            self._at_work.add(known.view["id"])
            self._made[known.view["id"]] = tags_of(known.view).get(SERVICE_UID_TAG, "")
            self._tokens[token] = known.view["id"]

    def of_token(self, token: str) -> list[Known]:
        """The load balancer that was made with this token."""
        listed = self._client.list(OCTAVIA, "lbaas/loadbalancers", "loadbalancers", tags=f"{TOKEN_TAG}={token}")
        with self._lock:
            ids = {*(each["id"] for each in listed), *([self._tokens[token]] if token in self._tokens else [])}
        return self.read((), ids) if ids else []

    def working(self, id: str) -> None:
        """A change of ours has been sent, and what is known already shows it."""
        with self._lock:
            self._at_work.add(id)

    def forget(self, id: str) -> None:
        """What is known of it may be wrong."""
        with self._lock:
            self._known.pop(id, None)
            self._at_work.discard(id)

    def gone(self, id: str) -> None:
        """It does not exist any more, or is about to."""
        self.forget(id)
        with self._lock:
            self._made.pop(id, None)
            self._tokens = {token: each for token, each in self._tokens.items() if each != id}

    # -------------------------------------------------------------------------------------------------------- helpers

    def _views(self, service_uids: Collection[str] | None) -> Iterator[View]:
        """Load balancers with this cluster's tags on them or their parts, or with those of these Services."""
        if service_uids is not None and not service_uids:
            return
        if service_uids is None:
            tag, wanted = CLUSTER_TAG, {self._cluster_id}
        else:
            tag, wanted = SERVICE_UID_TAG, {*service_uids}
        few = len(wanted) <= _FEW
        query = {"tags-any": ",".join(f"{tag}={each}" for each in sorted(wanted))} if few else {}
        views = {
            view["id"]: view for view in self._client.list(OCTAVIA, "lbaas/loadbalancers", "loadbalancers", **query)
        }
        holders = self._client.list(OCTAVIA, "lbaas/listeners", "listeners", **query)
        holders += self._client.list(OCTAVIA, "lbaas/pools", "pools", **query)
        sharing = {lb["id"] for part in holders if tags_of(part).get(tag) in wanted for lb in part["loadbalancers"]}
        for lb_id, view in views.items():
            if tags_of(view).get(tag) in wanted or lb_id in sharing:
                yield view
        for lb_id in sorted(sharing - views.keys()):
            try:
                yield self._client.get(OCTAVIA, f"lbaas/loadbalancers/{lb_id}")["loadbalancer"]
            except NotFound:
                continue

    def _is_current(self, view: View) -> bool:
        """Whether its parts are as remembered."""
        with self._lock:
            known, at_work = self._known.get(view["id"]), view["id"] in self._at_work
        if known is None or view["provisioning_status"] == "ERROR":
            return False
        return at_work or view.get("updated_at") == known.view.get("updated_at")

    def _updated(self, view: View) -> Known | None:
        """What is known of it; None if another thread has forgotten it meanwhile."""
        with self._lock:
            known = self._known.get(view["id"])
            if known is None:
                return None
            known.view = view
            if view["provisioning_status"] == "ACTIVE":
                self._at_work.discard(view["id"])
            return known

    def _whole(self, views: Sequence[View]) -> Iterator[Known]:
        """These load balancers with all their parts."""
        if not views:
            return
        found = {view["id"]: Known(view) for view in views}
        few = len(views) <= _FEW
        queries: list[dict[str, str]] = [{"loadbalancer_id": each} for each in found] if few else [{}]
        for query in queries:
            for kind in ("listeners", "pools"):
                for part in self._client.list(OCTAVIA, f"lbaas/{kind}", kind, **query):
                    for lb in part["loadbalancers"]:
                        if lb["id"] in found:
                            getattr(found[lb["id"]], kind)[part["id"]] = part
        if any(pool.get("healthmonitor_id") for known in found.values() for pool in known.pools.values()):
            monitors = self._client.list(OCTAVIA, "lbaas/healthmonitors", "healthmonitors")
            by_id = {each["id"]: each for each in monitors}
            for known in found.values():
                wanted = {pool.get("healthmonitor_id") for pool in known.pools.values()}
                known.monitors = {key: each for key, each in by_id.items() if key in wanted}
        for known in found.values():
            for key, pool in known.pools.items():
                if pool["members"]:
                    known.members[key] = self._client.list(OCTAVIA, f"lbaas/pools/{key}/members", "members")
        ports = {known.view["vip_port_id"]: known for known in found.values() if known.view.get("vip_port_id")}
        queries = [{"port_id": port} for port in ports] if few else [{}]
        for query in queries:
            for each in self._client.list(NEUTRON, "floatingips", "floatingips", **query):
                if each.get("port_id") in ports:
                    ports[each["port_id"]].floating_ip = each
        yield from found.values()


def is_made_for(floating_ip: View, known: Known) -> bool:
    """Whether the controller made this floating IP for the load balancer's owner."""
    description = describe(tags_of(known.view))
    return bool(description) and floating_ip.get("description") == description

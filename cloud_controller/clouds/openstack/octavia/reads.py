"""Reads load balancers with all their parts, in few calls, and remembers them.

A read of one whose view shows no change since (`updated_at`) costs one call: Octavia touches a load balancer whenever a
part of it is changed. While a change of ours is at work, its parts are known without a read. A read of all trusts that
time, which has whole seconds, only if the parts were read some seconds after it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress

from cloud_controller.cloud_errors import NotFound
from cloud_controller.clouds.openstack.client import OpenStackClient
from cloud_controller.clouds.openstack.octavia.topology import Subnet, Topology
from cloud_controller.clouds.openstack.octavia.wire import NEUTRON, OCTAVIA, TOKEN_TAG, Known, View, describe, tags_of
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_UID_TAG, Owner

_FEW = 3
"""Up to this many load balancers are read one by one, more by lists of the whole project."""
_EXISTING = ("PENDING_CREATE", "PENDING_UPDATE", "ACTIVE", "ERROR")
_SECONDS_OF_DOUBT = 2.0
"""How long after a change another one may still have the same `updated_at`."""


class Reads:
    """The load balancers of one cluster, and those that annotations name. Safe to share between threads."""

    def __init__(self, client: OpenStackClient, cluster_id: str, add_groups: Callable[[Sequence[Known]], None]) -> None:
        """`add_groups`: reads their security groups too."""
        self._client = client
        self._add_groups = add_groups
        self._cluster_id = cluster_id
        self._lock = threading.Lock()
        self._known: dict[str, Known] = {}
        self._at_work: set[str] = set()
        self._listed = False
        """Whether all have been listed: later ones are of this process."""
        self._tokens: dict[str, str] = {}
        """Of creations that this process has tried: what they made, "" if that is unknown or gone."""
        self._left: set[str] = set()
        """Descriptions of floating IPs that may be on no port."""
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
        with self._lock:
            before = {*self._known} if service_uids is None else set()
        views = {view["id"]: view for view in self._views(service_uids)}
        with self._lock:
            ids = {*ids, *(each for each, uid in self._made.items() if service_uids is None or uid in service_uids)}
        views |= self._named({*ids} - views.keys())
        everything = service_uids is None
        for each in before - views.keys():
            self._gone_unless_named(each)
        with self._lock:
            self._tokens |= {of: each for each, view in views.items() if (of := tags_of(view).get(TOKEN_TAG))}
        current: list[Known] = []
        stale: list[View] = []
        for view in views.values():
            known = self._updated(view) if self._is_current(view, surely=everything) else None
            match view["provisioning_status"]:
                case "DELETED":
                    continue
                case "PENDING_DELETE":
                    # Its parts go too.
                    current.append(known or Known(view))
                case _ if known is None:
                    stale.append(view)
                case _:
                    current.append(known)
        whole = self._whole(stale)
        # Octavia does not show changes in Neutron.
        changed = [*whole, *current] if everything else whole
        self._add_floating_ips(changed, whole_project=everything or len(changed) > _FEW)
        self._add_groups(changed)
        for known in whole:
            self.put(known)
        with self._lock:
            self._listed |= everything
        return [*current, *whole]

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

    def has_sibling(self, known: Known) -> bool:
        """Whether its Service has another load balancer: one replaces the other."""
        owner = Owner.of_tags(tags_of(known.view))
        with self._lock:
            others = [each.view for each in self._known.values() if each.view["id"] != known.view["id"]]
        return any(Owner.of_tags(tags_of(view)) == owner for view in others if view["provisioning_status"] in _EXISTING)

    def put(self, known: Known) -> None:
        """Remember it as it was just read."""
        with self._lock:
            before = self._known.get(known.view["id"])
            if before is not None and before.view.get("updated_at") == known.view.get("updated_at"):
                known.changed_at = before.changed_at
            self._known[known.view["id"]] = known
            self._at_work.discard(known.view["id"])

    def made(self, known: Known, token: str) -> None:
        """A creation of ours has been accepted."""
        self.put(known)
        with self._lock:
            self._at_work.add(known.view["id"])
            self._made[known.view["id"]] = tags_of(known.view).get(SERVICE_UID_TAG, "")
            self._tokens[token] = known.view["id"]

    def is_new(self, token: str) -> bool:
        """Whether nothing can have been made with this token yet: all have been listed, and it was not tried since."""
        with self._lock:
            known = token in self._tokens
            self._tokens.setdefault(token, "")
            return self._listed and not known

    def of_token(self, token: str) -> list[Known]:
        """The load balancer that was made with this token."""
        listed = self._client.list(OCTAVIA, "lbaas/loadbalancers", "loadbalancers", tags=f"{TOKEN_TAG}={token}")
        with self._lock:
            ids = {*(each["id"] for each in listed), self._tokens.get(token, "")} - {""}
        return self.read((), ids) if ids else []

    def may_be_left(self, description: str) -> bool:
        """Whether a floating IP with this description may be on no port."""
        with self._lock:
            return description in self._left

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
        with self._lock:
            if id in self._known:
                self._left.add(describe(tags_of(self._known[id].view)))
            self._made.pop(id, None)
            self._tokens = {token: "" if each == id else each for token, each in self._tokens.items()}
        self.forget(id)

    def _gone_unless_named(self, id: str) -> None:
        """A list of all no longer shows it: it is gone, unless only an annotation's name led to it."""
        with self._lock:
            owner = Owner.of_tags(tags_of(self._known[id].view)) if id in self._known else None
        if owner is not None and owner.cluster_id == self._cluster_id:
            self.gone(id)

    # -------------------------------------------------------------------------------------------------------- helpers

    def _named(self, ids: Collection[str]) -> dict[str, View]:
        """The load balancers with these IDs that exist."""
        found: dict[str, View] = {}
        if len(ids) > _FEW:
            listed = self._client.list(OCTAVIA, "lbaas/loadbalancers", "loadbalancers")
            found = {view["id"]: view for view in listed if view["id"] in ids}
        # What a list leaves out, such as another project's, may exist all the same: only its own read tells.
        for each in sorted({*ids} - found.keys()):
            with suppress(NotFound):
                found[each] = self._client.get(OCTAVIA, f"lbaas/loadbalancers/{each}")["loadbalancer"]
        for each in {*ids} - found.keys():
            self.gone(each)
        return found

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

    def _is_current(self, view: View, *, surely: bool) -> bool:
        """Whether its parts are as remembered; `surely`: without a doubt."""
        with self._lock:
            known, at_work = self._known.get(view["id"]), view["id"] in self._at_work
        if known is None or view["provisioning_status"] == "ERROR":
            return False
        before = known.view["provisioning_status"]
        if not at_work and before.startswith("PENDING") and view["provisioning_status"] != before:
            # It was read while a change was at work: only now it shows what became of it.
            return False
        same = view.get("updated_at") == known.view.get("updated_at")
        if surely:
            return same and not at_work and known.read_at > known.changed_at + _SECONDS_OF_DOUBT
        return at_work or same

    def _updated(self, view: View) -> Known | None:
        """What is known of it; None if another thread has forgotten it meanwhile."""
        with self._lock:
            known = self._known.get(view["id"])
            if known is None:
                return None
            if view.get("updated_at") != known.view.get("updated_at"):
                known.changed_at = time.monotonic()
            known.view = view
            if view["provisioning_status"] == "ACTIVE":
                self._at_work.discard(view["id"])
            return known

    def _whole(self, views: Sequence[View]) -> list[Known]:
        """These load balancers with all their parts."""
        if not views:
            return []
        found = {view["id"]: Known(view, read_at=time.monotonic()) for view in views}
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
        return [*found.values()]

    def _add_floating_ips(self, found: Sequence[Known], *, whole_project: bool) -> None:
        ports = [str(known.view.get("vip_port_id") or "") for known in found]
        before = [known.floating_ip for known in found]
        queries: list[dict[str, str]] = [{}] if whole_project else [{"port_id": port} for port in ports if port]
        listed = (self._client.list(NEUTRON, "floatingips", "floatingips", **query) for query in queries)
        shown = [each for some in listed for each in some]
        with self._lock:
            self._left |= {str(each["description"]) for each in shown if not each.get("port_id")}
        by_port = {str(each["port_id"]): each for each in shown if each.get("port_id")}
        for known, port, earlier in zip(found, ports, before, strict=True):
            # Otherwise another thread has given it another one meanwhile.
            if known.floating_ip is earlier:
                known.floating_ip = by_port.get(port)


def is_made_for(floating_ip: View, known: Known) -> bool:
    """Whether the controller made this floating IP for the load balancer's owner."""
    description = describe(tags_of(known.view))
    return bool(description) and floating_ip.get("description") == description

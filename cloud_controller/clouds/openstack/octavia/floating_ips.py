"""Gives load balancers their floating IPs, and takes them away. A floating IP that somebody else made is never deleted.

Neutron has no tags at the creation of a floating IP, so its description says whose it is (`wire.describe`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from cloud_controller.cloud_errors import Conflict, InvalidConfiguration, NotFound
from cloud_controller.clouds.openstack.client import Objects, OpenStackClient
from cloud_controller.clouds.openstack.octavia.reads import is_made_for
from cloud_controller.clouds.openstack.octavia.topology import Subnet, Topology
from cloud_controller.clouds.openstack.octavia.wire import (
    ATTRIBUTE_TAGS,
    NEUTRON,
    OCTAVIA,
    Known,
    View,
    describe,
    is_described,
    tags_of,
)
from cloud_controller.joined_requests import AtWork, JoinedRequests
from cloud_controller.load_balancers.model import LoadBalancerModel, Owner

_FIELD = "spec.loadBalancerIP"
_GATHER = 0.1
"""Seconds for which a list waits for other workers."""


class FloatingIps:
    """The floating IPs of one cluster's load balancers."""

    def __init__(self, client: OpenStackClient, topology: Callable[[], Topology]) -> None:
        self._client = client
        self._topology = topology
        self._looking = AtWork()
        self._listed = JoinedRequests(self._with_descriptions, callers=self._looking.number, gather=_GATHER)

    def put(self, known: Known, model: LoadBalancerModel, *, look: bool = True) -> None:
        """Give the load balancer the floating IP that the model asks for, or none if it is internal.

        `look`: whether one that was made for it may be on no port.
        """
        current = known.floating_ip
        keep = bool(model.attributes.get("keep_floating_ip"))
        if model.attributes["internal"]:
            self.release(known, keep=keep)
            return
        address = str(model.attributes.get("load_balancer_ip") or "")
        network, choice = str(model.attributes["floating_network"]), str(model.attributes["floating_subnet"])
        subnets = self._topology().candidates(network, choice, "floating subnet") if choice else []
        if current is not None and _fits(current, network, subnets, address):
            return
        port_id = known.view["vip_port_id"]
        # One may be left from a process that ended between two calls.
        free = self._found(known, network, subnets, address) if look or address else None
        made = free if free is not None else self._made(known, network, subnets, None if current else port_id)
        self.release(known, keep=keep)
        if made.get("port_id") != port_id:
            # Only while it is as it was read: somebody may have taken a free one meanwhile.
            revision, body = made.get("revision_number"), {"floatingip": {"port_id": port_id}}
            made = self._client.put(NEUTRON, f"floatingips/{made['id']}", body, if_revision=revision)["floatingip"]
        known.floating_ip = made

    def release(self, known: Known, *, keep: bool = False) -> None:
        """Take the floating IP from the load balancer: delete it if it was made for it and is not to be kept.

        It is read again: one that somebody has put on another port meanwhile is left alone.
        """
        if known.floating_ip is not None:
            self._release(known, self._made_for(known), keep=keep)

    def remove(self, known: Known) -> None:
        """Release that of a load balancer that is deleted, and delete what was made for it and is on no port: a
        process ended between two calls."""
        made = self._made_for(known)
        self._release(known, made, keep=False)
        for each in () if _is_kept(known) else _free(made):
            with suppress(NotFound):
                self._client.delete(NEUTRON, f"floatingips/{each['id']}")

    def _release(self, known: Known, made: Sequence[View], *, keep: bool) -> None:
        if known.floating_ip is None:
            return
        floating_ip_id, known.floating_ip = known.floating_ip["id"], None
        path = f"floatingips/{floating_ip_id}"
        try:
            current = next((each for each in made if each["id"] == floating_ip_id), None)
            current = self._client.get(NEUTRON, path)["floatingip"] if current is None else current
            if current.get("port_id") != known.view["vip_port_id"]:
                return
            if is_made_for(current, known) and not (keep or _is_kept(known)):
                self._client.delete(NEUTRON, path)
            else:
                # The description would make it the controller's again.
                own = {"description": "kept from a deleted Service"} if is_made_for(current, known) else {}
                body = {"floatingip": {"port_id": None, **own}}
                self._client.put(NEUTRON, path, body, if_revision=current.get("revision_number"))
        except NotFound:
            pass

    def _made_for(self, known: Known) -> list[View]:
        """Those that the controller made for the load balancer's owner, as they are now: workers share the list."""
        description = describe(tags_of(known.view))
        if not description:
            return []
        with self._looking:
            return [each for each in self._listed([description]) if each["description"] == description]

    def _with_descriptions(self, descriptions: Collection[str]) -> Objects:
        return self._client.list_by(NEUTRON, "floatingips", "floatingips", "description", descriptions)

    def _found(self, known: Known, network: str, subnets: list[Subnet], address: str) -> View | None:
        """The floating IP with the address that the Service asks for, or one that was made for it and is free."""
        if not address:
            fitting = (each for each in _free(self._made_for(known)) if _fits(each, network, subnets, ""))
            return next(fitting, None)
        found = self._client.list(NEUTRON, "floatingips", "floatingips", floating_ip_address=address)
        if not found:
            raise InvalidConfiguration(_FIELD, f"the project has no floating IP {address}", "one of the project's")
        port = found[0].get("port_id")
        if port and port != known.view["vip_port_id"] and not self._is_predecessors(port, known):
            raise InvalidConfiguration(_FIELD, f"floating IP {address} is on port {port} of another", "a free one")
        description = found[0].get("description") or ""
        if not port and is_described(description) and not is_made_for(found[0], known):
            why = f"floating IP {address} was made for another: {description}"
            raise InvalidConfiguration(_FIELD, why, "one with a description of your own")
        return found[0]

    def _is_predecessors(self, port: str, known: Known) -> bool:
        """Whether the port is that of another load balancer of the same Service, which this one replaces."""
        owner = Owner.of_tags(tags_of(known.view))
        found = self._client.list(OCTAVIA, "lbaas/loadbalancers", "loadbalancers", vip_port_id=port)
        return owner is not None and any(Owner.of_tags(tags_of(each)) == owner for each in found)

    def _made(self, known: Known, network: str, subnets: list[Subnet], port_id: str | None) -> View:
        """A new floating IP, from the first of the subnets that has a free address."""
        body = {"floating_network_id": network, "description": describe(tags_of(known.view)), "port_id": port_id}
        choices = [{"subnet_id": each.id} for each in subnets] or [{}]
        for last, chosen in enumerate(choices, 1 - len(choices)):
            try:
                return dict(self._client.post(NEUTRON, "floatingips", {"floatingip": body | chosen})["floatingip"])
            except Conflict:
                # The subnet has no free address; another may have.
                if last == 0:
                    raise
        raise AssertionError("there is at least one choice")


def _free(floating_ips: Sequence[View]) -> list[View]:
    return [each for each in floating_ips if not each.get("port_id")]


def _is_kept(known: Known) -> bool:
    return tags_of(known.view).get(ATTRIBUTE_TAGS["keep_floating_ip"]) == "true"


def _fits(floating_ip: View, network: str, subnets: list[Subnet], address: str) -> bool:
    at = floating_ip["floating_ip_address"]
    if address:
        return bool(at == address)
    return floating_ip["floating_network_id"] == network and (not subnets or any(each.has(at) for each in subnets))

"""Opens nodes to load balancers: a security group for each Service, on the ports of its members.

Neutron has no tags at the creation of a group, so its description says whose it is (`wire.describe`). TO SURVIVE A
CRASH AFTER ANY CALL, a group is made after its load balancer and deleted before it; a load balancer that replaces
another one has its group. A port's other groups stay: it is written only as it was read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from cloud_controller import retries
from cloud_controller.cloud_errors import AccessDenied, InvalidConfiguration, LeftOut, NotFound
from cloud_controller.clouds.openstack.client import Objects, OpenStackClient
from cloud_controller.clouds.openstack.octavia.node_rules import addresses_of, body_of, observed_access, text_of
from cloud_controller.clouds.openstack.octavia.sent import Sent
from cloud_controller.clouds.openstack.octavia.topology import Topology
from cloud_controller.clouds.openstack.octavia.wire import (
    ATTRIBUTE_TAGS,
    NEUTRON,
    Known,
    View,
    describe,
    member_addresses,
    member_views,
    tags_of,
)
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import LoadBalancerModel


class NodeGroups:
    """The security groups of one cluster's load balancers. Safe to share between threads."""

    def __init__(self, client: OpenStackClient, topology: Callable[[], Topology], *, managed: bool) -> None:
        """`managed`: whether load balancers should have groups; otherwise existing ones are removed."""
        self._client = client
        self._topology = topology
        self._managed = managed
        self._writing = threading.Lock()
        """Services share nodes: without it, each would overtake the others' changes of a port."""

    def read(self, found: Iterable[Known]) -> None:
        """Add the groups, and the ports that have them."""
        tagged = [(describe(tags_of(known.view)), known) for known in found if _is_tagged(known)]
        groups: dict[str, View] = {}
        try:
            for each in self._groups({description for description, _ in tagged} - {""}):
                groups.setdefault(each["description"], each)
            ports = self._with_groups([each["id"] for each in groups.values()])
        except AccessDenied:
            if self._managed:
                raise
            # The Services that still have one report it when it is to be removed; the others go on.
            return
        for description, known in tagged:
            known.group = group = groups.get(description)
            known.opened = {each["id"]: each for each in ports if group and group["id"] in each["security_groups"]}
        if self._managed:
            self._add_unguarded([known for _, known in tagged])

    def _add_unguarded(self, found: Sequence[Known]) -> None:
        """Add the members whose ports no group can be on."""
        closed = {
            address for known in found for address in member_addresses(known) - addresses_of(known.opened.values())
        }
        shown = self._ports("fixed_ips", [f"ip_address={each}" for each in sorted(closed)])
        unguarded = addresses_of(each for each in shown if not each.get("port_security_enabled", True))
        for known in found:
            known.unguarded = frozenset(unguarded & member_addresses(known))

    def put(self, known: Known, model: LoadBalancerModel) -> Sent:
        """Make the group and its ports what the model says; without one there, remove it. Nodes without a port in the
        project are left out."""
        if not model.attributes.get("node_group"):
            self.remove(known)
            return Sent(busy=False)
        group = known.group or next(iter(self._of_owner(known)), None) or self._made(known)
        known.group = group
        # Old members serve until their successors are healthy.
        rules = {*_texts(model.attributes, "node_rules")}
        kept_rules = rules | self._used_rules(known)
        self._put_rules(group, rules, kept_rules)
        wanted = {*_texts(model.attributes, "open_nodes")}
        kept = wanted | member_addresses(known)
        present = {port["id"]: port for port in self._with_groups([group["id"]])}
        unguarded = set(known.unguarded)
        ports, missing = self._ports_of(wanted - addresses_of(present.values()) - unguarded)
        for port in ports:
            if port.get("port_security_enabled", True):
                present[port["id"]] = self._write(port, group["id"], on=True)
            else:
                unguarded |= addresses_of([port])
        for port in [*present.values()]:
            if not kept & addresses_of([port]):
                self._write(port, group["id"], on=False)
                del present[port["id"]]
        known.opened, known.unguarded = present, frozenset(unguarded)
        left_out = None
        if missing:
            why = f"{'; '.join(missing)}, so no security group can open them"
            left_out = LeftOut(
                "security groups of nodes", why, "nodes with one port; delete the Node of a server that is gone"
            )
        left = {*_texts(observed_access(group, present.values(), kept, known.unguarded), "open_nodes")} - wanted
        left |= {text_of(each) for each in group["security_group_rules"]} - rules
        waits = "waiting for old members to be removed before their nodes are closed" if left else ""
        return Sent(busy=False, unfinished=waits, left_out=left_out)

    def remove(self, known: Known) -> None:
        """Take the group off all ports and delete it."""
        if not self._managed and not _is_tagged(known):
            return
        for group in self._of_owner(known):
            for port in self._with_groups([group["id"]]):
                self._write(port, group["id"], on=False)
            with suppress(NotFound):
                self._client.delete(NEUTRON, f"security-groups/{group['id']}")
        known.group, known.opened = None, {}

    def _of_owner(self, known: Known) -> Objects:
        description = describe(tags_of(known.view))
        return self._groups([description]) if description else []

    def _made(self, known: Known) -> View:
        body = {"name": known.view["name"], "description": describe(tags_of(known.view))}
        made: View = self._client.post(NEUTRON, "security-groups", {"security_group": body})["security_group"]
        return made

    def _used_rules(self, known: Known) -> set[str]:
        """Those by which present members are reached."""
        ranges = {each.id: each.cidr for each in self._topology().subnets}
        found = set()
        for protocol, member in member_views(known):
            if cidr := ranges.get(member.get("subnet_id") or ""):
                found.add(f"{protocol} {member['protocol_port']} {cidr}")
                if port := member.get("monitor_port"):
                    found.add(f"tcp {port} {cidr}")
        return found

    def _put_rules(self, group: View, wanted: set[str], kept: set[str]) -> None:
        """Add what is missing, and remove all but these and what is kept.

        Also those that Neutron gives a new group are removed: the node's own groups say what it may send.
        """
        rules: list[View] = group["security_group_rules"]
        missing = sorted(wanted - {text_of(each) for each in rules})
        if missing:
            body = {"security_group_rules": [body_of(each, group["id"]) for each in missing]}
            rules += self._client.post(NEUTRON, "security-group-rules", body)["security_group_rules"]
        for each in [each for each in rules if text_of(each) not in kept]:
            with suppress(NotFound):
                self._client.delete(NEUTRON, f"security-group-rules/{each['id']}")
            rules.remove(each)

    def _ports_of(self, addresses: Collection[str]) -> tuple[Objects, list[str]]:
        """The nodes' ports, and what is wrong with addresses that no port, or one of several ports, has."""
        found = self._ports("fixed_ips", [f"ip_address={each}" for each in sorted(addresses)])
        ports: dict[str, View] = {}
        missing = []
        for address in sorted(addresses):
            fitting = [each for each in found if address in addresses_of([each])]
            if subnet := self._only_subnet(address):
                here = {"subnet_id": subnet, "ip_address": address}
                fitting = [each for each in fitting if here in each["fixed_ips"]]
            if len(fitting) == 1:
                ports[fitting[0]["id"]] = fitting[0]
            elif fitting:
                several = ", ".join(each["id"] for each in fitting)
                missing.append(f"several ports of the project have the node's address {address} ({several})")
            else:
                where = f" in subnet {subnet}" if subnet else ""
                missing.append(f"no port of the project has the node's address {address}{where}")
        return [*ports.values()], missing

    def _only_subnet(self, address: str) -> str | None:
        """The ID of the subnet of a node's address; None if subnets overlap: then its only port is the node's."""
        try:
            return self._topology().subnet_of(address).id
        except InvalidConfiguration:
            return None

    def _write(self, port: View, group_id: str, *, on: bool) -> View:
        """Put the group on the port or take it off: the port's other groups stay as others write them."""

        def written(attempt: int) -> View:
            now = self._client.get(NEUTRON, f"ports/{port['id']}")["port"] if attempt else port
            groups = [each for each in now["security_groups"] if each != group_id]
            body = {"port": {"security_groups": [*groups, *([group_id] if on else [])]}}
            revision = now.get("revision_number")
            after: View = self._client.put(NEUTRON, f"ports/{port['id']}", body, if_revision=revision)["port"]
            return after

        # Otherwise the node is gone, which is the next plan's business.
        with self._writing, suppress(NotFound):
            return retries.change(written)
        return port

    def _groups(self, descriptions: Collection[str]) -> Objects:
        """Those with these descriptions, always in the same order."""
        listed = self._client.list_by(NEUTRON, "security-groups", "security_groups", "description", descriptions)
        found = [each for each in listed if each["description"] in descriptions]
        return sorted(found, key=lambda each: str(each["id"]))

    def _with_groups(self, ids: Collection[str]) -> Objects:
        """The ports that have one of these groups, also where Neutron does not know the filter."""
        listed = self._ports("security_groups", ids)
        return [each for each in listed if {*ids} & {*each["security_groups"]}]

    def _ports(self, field: str, values: Collection[str]) -> Objects:
        return self._client.list_by(NEUTRON, "ports", "ports", field, values)


def _is_tagged(known: Known) -> bool:
    return tags_of(known.view).get(ATTRIBUTE_TAGS["node_group"]) == "true"


def _texts(attributes: Mapping[str, Value | None], name: str) -> Sequence[str]:
    found = attributes.get(name)
    return found if isinstance(found, tuple) else ()

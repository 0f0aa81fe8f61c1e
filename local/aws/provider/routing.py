"""Route tables, routes, and the associations of tables."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

from local.aws.provider.api import Api, Deadline
from local.aws.provider.ec2 import Ec2Kind, arn, until_deleted
from local.aws.provider.kind import Change, Creation, Kind, find_or_make, present, tag_outputs
from local.plugins.provider import ProviderError
from local.plugins.values import PropertyMap


class RouteTable(Ec2Kind):
    """A route table. Its routes are separate resources, and a controller may own some."""

    type = "aws:ec2/routeTable:RouteTable"
    noun, describe, items, ids = "route-table", "describe_route_tables", "RouteTables", "RouteTableIds"
    inputs = frozenset({"vpcId", "tags"})
    required = frozenset({"vpcId"})
    replaces = frozenset({"vpcId"})

    def make(self, api: Api, creation: Creation) -> str:
        if (made := self.made_before(api, creation)) is not None:
            return made
        vpc = creation.inputs["vpcId"]
        answer = api.call("ec2", "create_route_table", VpcId=vpc, TagSpecifications=self.tagged(creation))
        return str(answer["RouteTable"]["RouteTableId"])

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        del known
        table = self.found(api, id)
        if table is None:
            return None
        return {
            "arn": arn(api, table, "route-table", id),
            "vpcId": table["VpcId"],
            "ownerId": table.get("OwnerId", ""),
            "region": api.region,
            **tag_outputs(table.get("Tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        self.change_tags(api, id, change)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del outputs
        until_deleted(deadline, f"{id} to be unused", lambda: api.call("ec2", "delete_route_table", RouteTableId=id))


_TARGETS: Final = {
    "gatewayId": "GatewayId",
    "natGatewayId": "NatGatewayId",
    "networkInterfaceId": "NetworkInterfaceId",
    "egressOnlyGatewayId": "EgressOnlyInternetGatewayId",
    "transitGatewayId": "TransitGatewayId",
    "vpcPeeringConnectionId": "VpcPeeringConnectionId",
}
_DESTINATIONS: Final = {
    "destinationCidrBlock": "DestinationCidrBlock",
    "destinationIpv6CidrBlock": "DestinationIpv6CidrBlock",
}
_SAID: Final = {"routeTableId": "RouteTableId", **_TARGETS, **_DESTINATIONS}


class Route(Kind):
    """One route; its id consists of the table's and the destination, as in pulumi-aws."""

    type = "aws:ec2/route:Route"
    inputs = frozenset({"routeTableId", *_TARGETS, *_DESTINATIONS})
    required = frozenset({"routeTableId"})
    replaces = frozenset({"routeTableId", *_DESTINATIONS})
    taggable = False

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs
        destination = next((inputs[key] for key in _DESTINATIONS if inputs.get(key)), "")
        made = f"r-{inputs['routeTableId']}{zlib.crc32(destination.encode())}"

        def create() -> str:
            api.call("ec2", "create_route", **_route(inputs))
            return made

        def left() -> str | None:
            there = self.read(api, made, inputs)
            return made if there is not None and _target(there) == _target(inputs) else None

        return find_or_make(create, left, "RouteAlreadyExists")

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        del id
        if "routeTableId" not in known:
            raise ProviderError("a route cannot be imported: its id alone does not identify it")
        table = api.one("ec2", "describe_route_tables", "RouteTables", RouteTableIds=[known["routeTableId"]])
        for route in (table or {}).get("Routes", []):
            if any(known.get(ours) and route.get(theirs) == known[ours] for ours, theirs in _DESTINATIONS.items()):
                return {
                    "routeTableId": known["routeTableId"],
                    "origin": route.get("Origin", ""),
                    "state": route.get("State", ""),
                    "instanceId": route.get("InstanceId", ""),
                    "instanceOwnerId": route.get("InstanceOwnerId", ""),
                    "region": api.region,
                    **{
                        ours: route[theirs]
                        for ours, theirs in {**_TARGETS, **_DESTINATIONS}.items()
                        if route.get(theirs)
                    },
                }
        return None

    def change(self, api: Api, id: str, change: Change) -> None:
        del id
        api.call("ec2", "replace_route", **_route(change.news))

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del id, deadline
        destination = {theirs: outputs[ours] for ours, theirs in _DESTINATIONS.items() if outputs.get(ours)}
        api.call("ec2", "delete_route", RouteTableId=outputs["routeTableId"], **destination)


class RouteTableAssociation(Kind):
    """The association of a subnet or gateway with a route table."""

    type = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    inputs = frozenset({"routeTableId", "subnetId", "gatewayId"})
    required = frozenset({"routeTableId"})
    # Another table makes another association, with another id.
    replaces = frozenset({"routeTableId", "subnetId", "gatewayId"})
    taggable = False
    delete_first = True

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs
        params = {key[0].upper() + key[1:]: value for key, value in inputs.items() if value}

        def create() -> str:
            return str(api.call("ec2", "associate_route_table", **params)["AssociationId"])

        def left() -> str | None:
            there = _association(api, lambda a: all(a.get(k) == v for k, v in params.items()))
            return str(there["RouteTableAssociationId"]) if there is not None else None

        return find_or_make(create, left, "Resource.AlreadyAssociated")

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        del known
        found = _association(api, lambda a: a["RouteTableAssociationId"] == id)
        if found is None:
            return None
        return {
            "routeTableId": found["RouteTableId"],
            "region": api.region,
            **present(subnetId=found.get("SubnetId"), gatewayId=found.get("GatewayId")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        """No input can change in place."""

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del outputs, deadline
        api.call("ec2", "disassociate_route_table", AssociationId=id)


def _route(inputs: PropertyMap) -> dict[str, Any]:
    return {_SAID[key]: value for key, value in inputs.items() if value}


def _target(values: PropertyMap) -> PropertyMap:
    return {key: values[key] for key in _TARGETS if values.get(key)}


def _association(api: Api, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    tables = api.all("ec2", "describe_route_tables", "RouteTables")
    found = (a for table in tables for a in table.get("Associations", []) if not a.get("Main") and wanted(a))
    return next(found, None)

"""Networks: VPCs, their subnets and their gateways to the internet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from local.aws.provider.api import Api, Deadline
from local.aws.provider.ec2 import Ec2Kind, arn, until_deleted, until_state
from local.aws.provider.kind import Change, Creation, completing, present, tag_outputs
from local.plugins.values import PropertyMap, Value

_VPC_FLAGS: Final = {"enableDnsSupport": "EnableDnsSupport", "enableDnsHostnames": "EnableDnsHostnames"}
_SUBNET_FLAGS: Final = {
    "mapPublicIpOnLaunch": "MapPublicIpOnLaunch",
    "assignIpv6AddressOnCreation": "AssignIpv6AddressOnCreation",
}


class Vpc(Ec2Kind):
    """A VPC, with its DNS settings, which need separate calls."""

    type = "aws:ec2/vpc:Vpc"
    noun, describe, items, ids = "vpc", "describe_vpcs", "Vpcs", "VpcIds"
    inputs = frozenset({"cidrBlock", "instanceTenancy", "assignGeneratedIpv6CidrBlock", "tags", *_VPC_FLAGS})
    required = frozenset({"cidrBlock"})
    replaces = frozenset({"cidrBlock", "instanceTenancy", "assignGeneratedIpv6CidrBlock"})
    write_only = frozenset({"assignGeneratedIpv6CidrBlock"})
    defaults: ClassVar[Mapping[str, Value]] = {"enableDnsSupport": True, "instanceTenancy": "default"}

    def replaced_by(self, olds: PropertyMap, news: PropertyMap) -> frozenset[str]:
        del olds
        # Hardware tenancy can be given up, but not requested later.
        return self.replaces - ({"instanceTenancy"} if news.get("instanceTenancy") == "default" else set())

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs
        made = self.made_before(api, creation) or str(
            api.call(
                "ec2",
                "create_vpc",
                CidrBlock=inputs["cidrBlock"],
                InstanceTenancy=inputs["instanceTenancy"],
                AmazonProvidedIpv6CidrBlock=bool(inputs.get("assignGeneratedIpv6CidrBlock")),
                TagSpecifications=self.tagged(creation),
            )["Vpc"]["VpcId"]
        )
        with completing(made):
            until_state(api, self, made, "available", creation.deadline)
            self._set_flags(api, made, inputs, frozenset(inputs))
        return made

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        del known
        vpc = self.found(api, id)
        if vpc is None:
            return None
        flags = {
            ours: api.call("ec2", "describe_vpc_attribute", VpcId=id, Attribute=theirs[0].lower() + theirs[1:])[theirs][
                "Value"
            ]
            for ours, theirs in _VPC_FLAGS.items()
        }
        here = [{"Name": "vpc-id", "Values": [id]}]
        main = [*here, {"Name": "association.main", "Values": ["true"]}]
        tables = api.all("ec2", "describe_route_tables", "RouteTables", Filters=main)
        named = [*here, {"Name": "group-name", "Values": ["default"]}]
        groups = api.all("ec2", "describe_security_groups", "SecurityGroups", Filters=named)
        acls = api.all("ec2", "describe_network_acls", "NetworkAcls", Filters=here)
        ipv6: dict[str, Any] = next(iter(vpc.get("Ipv6CidrBlockAssociationSet") or []), {})
        table = tables[0]["RouteTableId"] if tables else ""
        return {
            "arn": arn(api, vpc, "vpc", id),
            "cidrBlock": vpc["CidrBlock"],
            "instanceTenancy": vpc.get("InstanceTenancy", "default"),
            "dhcpOptionsId": vpc.get("DhcpOptionsId", ""),
            "defaultRouteTableId": table,
            "mainRouteTableId": table,
            "defaultSecurityGroupId": groups[0]["GroupId"] if groups else "",
            "defaultNetworkAclId": next((a["NetworkAclId"] for a in acls if a.get("IsDefault")), ""),
            "ipv6AssociationId": ipv6.get("AssociationId", ""),
            "ipv6CidrBlock": ipv6.get("Ipv6CidrBlock", ""),
            "ownerId": vpc.get("OwnerId", ""),
            "region": api.region,
            **flags,
            **tag_outputs(vpc.get("Tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        if "instanceTenancy" in change.changed:
            api.call("ec2", "modify_vpc_tenancy", VpcId=id, InstanceTenancy=change.news["instanceTenancy"])
        self._set_flags(api, id, change.news, change.changed)
        self.change_tags(api, id, change)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del outputs
        # AWS still counts what was deleted a moment ago.
        until_deleted(deadline, f"{id} to be empty", lambda: api.call("ec2", "delete_vpc", VpcId=id))

    def _set_flags(self, api: Api, id: str, inputs: PropertyMap, changed: frozenset[str]) -> None:
        for ours, theirs in _VPC_FLAGS.items():
            if ours in changed:
                value = {"Value": bool(inputs.get(ours, self.defaults.get(ours, False)))}
                api.call("ec2", "modify_vpc_attribute", VpcId=id, **{theirs: value})


class Subnet(Ec2Kind):
    """A range of a VPC in one zone."""

    type = "aws:ec2/subnet:Subnet"
    noun, describe, items, ids = "subnet", "describe_subnets", "Subnets", "SubnetIds"
    inputs = frozenset(
        {"vpcId", "cidrBlock", "ipv6CidrBlock", "availabilityZone", "availabilityZoneId", "tags", *_SUBNET_FLAGS}
    )
    required = frozenset({"vpcId"})
    replaces = frozenset({"vpcId", "cidrBlock", "ipv6CidrBlock", "availabilityZone", "availabilityZoneId"})
    defaults: ClassVar[Mapping[str, Value]] = {"mapPublicIpOnLaunch": False, "assignIpv6AddressOnCreation": False}

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs
        made = self.made_before(api, creation) or str(
            api.call(
                "ec2",
                "create_subnet",
                VpcId=inputs["vpcId"],
                TagSpecifications=self.tagged(creation),
                **present(
                    CidrBlock=inputs.get("cidrBlock"),
                    Ipv6CidrBlock=inputs.get("ipv6CidrBlock"),
                    AvailabilityZone=inputs.get("availabilityZone"),
                    AvailabilityZoneId=inputs.get("availabilityZoneId"),
                ),
            )["Subnet"]["SubnetId"]
        )
        with completing(made):
            until_state(api, self, made, "available", creation.deadline)
            self._set_flags(api, made, inputs, frozenset(k for k in _SUBNET_FLAGS if inputs.get(k)))
        return made

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        del known
        subnet = self.found(api, id)
        if subnet is None:
            return None
        ipv6: dict[str, Any] = next(iter(subnet.get("Ipv6CidrBlockAssociationSet") or []), {})
        return {
            "arn": subnet.get("SubnetArn") or arn(api, subnet, "subnet", id),
            "vpcId": subnet["VpcId"],
            "cidrBlock": subnet.get("CidrBlock", ""),
            "availabilityZone": subnet["AvailabilityZone"],
            "availabilityZoneId": subnet.get("AvailabilityZoneId", ""),
            "ownerId": subnet.get("OwnerId", ""),
            "region": api.region,
            **present(ipv6CidrBlock=ipv6.get("Ipv6CidrBlock"), ipv6CidrBlockAssociationId=ipv6.get("AssociationId")),
            **{ours: bool(subnet.get(theirs)) for ours, theirs in _SUBNET_FLAGS.items()},
            **tag_outputs(subnet.get("Tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        self._set_flags(api, id, change.news, change.changed)
        self.change_tags(api, id, change)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del outputs
        until_deleted(deadline, f"{id} to be empty", lambda: api.call("ec2", "delete_subnet", SubnetId=id))

    def _set_flags(self, api: Api, id: str, inputs: PropertyMap, changed: frozenset[str]) -> None:
        # EC2 changes one attribute per call.
        for ours, theirs in _SUBNET_FLAGS.items():
            if ours in changed:
                value = {"Value": bool(inputs.get(ours))}
                api.call("ec2", "modify_subnet_attribute", SubnetId=id, **{theirs: value})


class InternetGateway(Ec2Kind):
    """A VPC's gateway to the internet."""

    type = "aws:ec2/internetGateway:InternetGateway"
    noun, describe, items, ids = (
        "internet-gateway",
        "describe_internet_gateways",
        "InternetGateways",
        "InternetGatewayIds",
    )
    inputs = frozenset({"vpcId", "tags"})

    def make(self, api: Api, creation: Creation) -> str:
        made = self.made_before(api, creation) or str(
            api.call("ec2", "create_internet_gateway", TagSpecifications=self.tagged(creation))["InternetGateway"][
                "InternetGatewayId"
            ]
        )
        with completing(made):
            self._attach(api, made, creation.inputs.get("vpcId"))
        return made

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        del known
        gateway = self.found(api, id)
        if gateway is None:
            return None
        return {
            "arn": arn(api, gateway, "internet-gateway", id),
            "vpcId": _attached_to(gateway),
            "ownerId": gateway.get("OwnerId", ""),
            "region": api.region,
            **tag_outputs(gateway.get("Tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        if "vpcId" in change.changed:
            self._attach(api, id, change.news.get("vpcId"))
        self.change_tags(api, id, change)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del outputs
        # Addresses of the VPC's instances hold it for a while.
        until_deleted(deadline, f"{id} to be unused", lambda: self._attach(api, id, None))
        api.call("ec2", "delete_internet_gateway", InternetGatewayId=id)

    def _attach(self, api: Api, id: str, vpc: str | None) -> None:
        now = _attached_to(self.found(api, id) or {})
        if now and now != vpc:
            api.call("ec2", "detach_internet_gateway", InternetGatewayId=id, VpcId=now)
        if vpc and now != vpc:
            api.call("ec2", "attach_internet_gateway", InternetGatewayId=id, VpcId=vpc)


def _attached_to(gateway: dict[str, Any]) -> str:
    attachments = gateway.get("Attachments") or []
    return str(attachments[0]["VpcId"]) if attachments else ""

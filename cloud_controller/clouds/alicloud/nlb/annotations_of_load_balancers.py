"""Annotations of the NLB instance: zones, addresses, protection, reuse."""

from __future__ import annotations

from cloud_controller.clouds.alicloud.annotation_entries import BACKEND_TYPE as BACKEND_TYPE_NAME
from cloud_controller.clouds.alicloud.annotation_entries import ON_OFF
from cloud_controller.clouds.alicloud.nlb.annotation_entries import API, LISTED, SEED, entry
from cloud_controller.load_balancers.annotation import OWN_NAME, SELECTS, SHARED, TAGS
from cloud_controller.load_balancers.catalogue import Annotation, Mutability
from cloud_controller.load_balancers.restrictions import MOST_RANGES, SOURCE_RANGES

LOAD_BALANCERS = (
    entry(
        "zone-maps",
        "list",
        "zones",
        "The zones of the load balancer, each with one vSwitch of the cluster's VPC, as ZONE:VSWITCH, and after it, if"
        " wanted, the private IPv4 address and the elastic IP of the zone: ZONE:VSWITCH:ADDRESS:EIP, or"
        " ZONE:VSWITCH::EIP. Required, unless `id` is set. Where a region has two zones, at least two are needed; at"
        " most 10. Removing a zone takes the load balancer out of it.",
        default_note="none",
        example="cn-hangzhou-k:vsw-0a1,cn-hangzhou-h:vsw-0b2:192.168.0.20:eip-0c3",
        exclusive=("eip", "private_ipv4"),
        moves=("zones", "eip", "private_ipv4"),
        most=10,
    ),
    entry(
        "address-type",
        "text",
        "address_type",
        "Whether clients connect from the Internet or only from the VPC and networks connected to it.",
        allowed=("internet", "intranet"),
        any_case=True,
        default="internet",
        moves=("address_type",),
    ),
    entry(
        "ip-version",
        "text",
        "address_ip_version",
        "Whether the load balancer has IPv4 addresses or both families. Backends are always reached by IPv4.",
        allowed=("ipv4", "DualStack"),
        any_case=True,
        default="ipv4",
        mutability=Mutability.REPLACE,
    ),
    entry(
        "ipv6-address-type",
        "text",
        "ipv6_address_type",
        "Whether clients may connect to the IPv6 addresses from the Internet. Only with `ip-version: DualStack`.",
        allowed=("internet", "intranet"),
        any_case=True,
        default="intranet",
        moves=("ipv6_address_type",),
        keeps={"internet": ("intranet",)},
    ),
    entry(
        "name",
        "text",
        "name",
        "The load balancer's name, which need not be unique.",
        pattern="[A-Za-z][A-Za-z0-9._-]{1,127}",
        form="2 to 128 letters, digits, full stops, underscores and hyphens, beginning with a letter",
        default_note="CLUSTER-NAMESPACE-NAME",
        example="edge",
        names_nothing=OWN_NAME,
    ),
    entry(
        "id",
        "text",
        "id",
        "The ID of an existing NLB to use. The Service has its own listeners and server groups there, marked by tags;"
        " everything else stays untouched. A port that is already in use is an error.",
        pattern="nlb-[0-9a-z-]{1,64}",
        form="the ID of an NLB, such as nlb-0123456789abcdef",
        default_note="a new load balancer for the Service",
        example="nlb-0123456789abcdef",
        mutability=Mutability.REPLACE,
        names_nothing=SHARED,
    ),
    entry(
        "force-override-listeners",
        "flag",
        "force_override_listeners",
        "With `id`: take over listeners on the Service's ports that belong to no Service. Their server groups stay"
        " unchanged; when the Service is deleted, the listeners return to them.",
        applies_to="a load balancer reused by `id`",
        default=False,
    ),
    entry(
        "preserve-lb-on-delete",
        "flag",
        "preserve_on_delete",
        "When the Service is deleted or no longer needs a load balancer, keep its cloud resources unchanged and without"
        " an owner. The tag `cloud-controller/preserved-from` names the former owner.",
        argument="preserve_on_delete",
        applies_to="the load balancer, or the Service's parts of a reused one",
        default=False,
    ),
    entry(
        "resource-group-id",
        "text",
        "resource_group_id",
        "The resource group in which the load balancer and its server groups are created.",
        pattern="rg-[0-9a-z-]{1,64}",
        form="the ID of a resource group, such as rg-0123456789abcde",
        default_note="the account's default resource group",
        example="rg-0123456789abcde",
        mutability=Mutability.CREATE_ONLY,
    ),
    entry(
        "additional-resource-tags",
        "list",
        "tags",
        "Tags of the load balancer, its listeners and its server groups, as key=value. Tags that are no longer listed"
        " stay: others may have added them.",
        default_note="none",
        example="team=web,stage=test",
        names_nothing=TAGS,
    ),
    entry(
        "bandwidth-package-id",
        "text",
        "bandwidth_package_id",
        "The Internet Shared Bandwidth instance that the load balancer's public addresses use. Without the annotation,"
        " the load balancer is taken out of the one that it is in.",
        pattern="cbwp-[0-9a-z-]{1,64}",
        form="the ID of an Internet Shared Bandwidth instance, such as cbwp-0123456789abcdef",
        default_note="none",
        example="cbwp-0123456789abcdef",
    ),
    entry(
        "security-group-ids",
        "list",
        "security_group_ids",
        "The complete list of the load balancer's security groups. The controller takes it out of all others; an empty"
        " value takes it out of every group. Without the annotation the groups stay as they are, so that removing it"
        " never opens a load balancer.",
        default_note="the load balancer's groups stay as they are; a new one has none, and admits every client",
        example="sg-0123456789abcdef",
        restricts=True,
        harmless=("",),
    ),
    entry(
        "cross-zone-enabled",
        "text",
        "cross_zone_enabled",
        "Whether the load balancer sends to backends in other zones than its own.",
        allowed=ON_OFF,
        default="on",
        source=LISTED,
    ),
    entry(
        "delete-protection",
        "text",
        "deletion_protection",
        "Whether the cloud refuses to delete the load balancer. The controller takes the protection off itself when the"
        " Service goes.",
        allowed=ON_OFF,
        default="on",
    ),
    entry(
        "modification-protection",
        "text",
        "modification_protection",
        "Whether the load balancer can be changed in the console. Changes by the controller are always possible.",
        allowed=("ConsoleProtection", "NonProtection"),
        default="ConsoleProtection",
    ),
    Annotation(
        name=SOURCE_RANGES,
        argument="load_balancer_source_ranges",
        sets="source_ranges",
        type=tuple,
        most=MOST_RANGES,
        default_note="all clients",
        example="10.0.0.0/8,192.0.2.0/24",
        description="The CIDRs of the clients that may connect. `spec.loadBalancerSourceRanges` takes precedence. The"
        " controller makes a security group for it, which no other load balancer uses.",
        applies_to="the load balancer; an error with `id` or `security-group-ids`",
        mutability=Mutability.IN_PLACE,
        since="0.1",
        source=f"Kubernetes, cloud-provider; {API}",
        names_nothing=SELECTS,
    ),
)

BACKEND_TYPE = Annotation(
    name=BACKEND_TYPE_NAME,
    argument="backend_type",
    sets="pool.members",
    type=str,
    allowed=("ecs", "eni"),
    any_case=True,
    default="ecs",
    description="The type of backends: `ecs` registers nodes by node port; `eni` registers ready pods by their address,"
    " which needs addresses of the VPC (as the Terway plugin assigns) but no node ports.",
    applies_to="every server group",
    mutability=Mutability.IN_PLACE,
    since="0.1",
    source=SEED,
)

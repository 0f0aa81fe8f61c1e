"""Node pools: servers that the program makes one by one, each with a port of its own, on different hosts."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_openstack as openstack

from cloud_controller.clouds.openstack.names import PROVIDER_NAME

from ... import inputs
from ..common.api_server import ApiServer
from ..interface import MachineParts, PoolSpec
from . import user_data
from .control_plane import API_PORT
from .settings import tags


def make(name: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> list[MachineParts]:
    """The pool `name` of the cluster."""
    full = f"{spec.cluster_name}-{name}"
    plane = spec.role == "control-plane"
    # Two machines of a control plane on one host would be lost together; of workers there may be more than hosts.
    policy = "anti-affinity" if plane else "soft-anti-affinity"
    group = openstack.compute.ServerGroup(full, name=full, policies=policy, opts=opts)
    found: list[MachineParts] = []
    made: list[pulumi.Resource] = []
    for index in range(spec.count):
        # One after another: a change begins with one machine. None waits until the node of the one before is Ready.
        made, parts = _machine(f"{full}-{index}", index, spec, group, opts, made)
        found.append(parts)
    if plane:
        authority = spec.join["certificate_authority"]
        ApiServer(full, endpoint=spec.join["api_url"], authority=authority, opts=_after(opts, made))
    return found


def _machine(
    full: str,
    index: int,
    spec: PoolSpec,
    group: openstack.compute.ServerGroup,
    opts: pulumi.ResourceOptions,
    after: Sequence[pulumi.Resource],
) -> tuple[list[pulumi.Resource], MachineParts]:
    """A machine with what it needs, and what the program knows of its node."""
    inputs.check_dns_label("name", full)
    plane = spec.role == "control-plane"
    zone = spec.zones[index % len(spec.zones)]
    subnet_id = spec.subnet_ids[zone]
    port = openstack.networking.Port(
        full,
        name=full,
        network_id=spec.join["network_id"],
        fixed_ips=[{"subnet_id": subnet_id}],
        security_group_ids=[spec.join["control_plane_security_group_id" if plane else "node_security_group_id"]],
        tags=tags(),
        # The CCM writes them: the ranges of the node's pods and, with `manageSecurityGroups`, the Services' groups.
        opts=pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(ignore_changes=["allowedAddressPairs", "securityGroupIds"])
        ),
    )
    start: pulumi.Output[str] = pulumi.Output.secret(user_data.of(full, spec, first=plane and index == 0))
    instance = openstack.compute.Instance(
        full,
        # Its node has the same name.
        name=full,
        flavor_name=spec.type,
        image_id=spec.join["image_id"],
        availability_zone=zone,
        networks=[{"port": port.id}],
        scheduler_hints=[{"group": group.id}],
        # User data by a disk that only the machine's root reads; pods are kept off the metadata service (`boot/`).
        config_drive=True,
        user_data=start,
        # The port is a resource of its own: Nova must let go of it.
        vendor_options={"detach_ports_before_destroy": True},
        opts=pulumi.ResourceOptions.merge(_after(opts, after), _changes(plane)),
    )
    made: list[pulumi.Resource] = [instance]
    if plane:
        made.append(
            openstack.loadbalancer.Member(
                full,
                name=full,
                pool_id=spec.join["pool_id"],
                address=instance.access_ip_v4,
                subnet_id=subnet_id,
                protocol_port=API_PORT,
                opts=_after(opts, after),
            )
        )
    provider_id = pulumi.Output.concat(f"{PROVIDER_NAME}:///", instance.id)
    return made, MachineParts(pulumi.Output.from_input(full), provider_id)


def _after(opts: pulumi.ResourceOptions, made: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=made))


def _changes(plane: bool) -> pulumi.ResourceOptions:
    """What of a machine only counts when it starts for the first time.

    The start script is that of the machine's creation: it has the version, the labels and keys that are renewed, and a
    new script must not replace a whole pool. Workers are replaced for another image or flavor; machines of the control
    plane are replaced and resized by people, who see to it that etcd keeps its majority.
    """
    ignored = ["userData", *(["imageId", "flavorName"] if plane else [])]
    return pulumi.ResourceOptions(
        ignore_changes=ignored,
        replace_on_changes=None if plane else ["imageId", "flavorName"],
        # The old machine goes first, because its name and its port must be free.
        delete_before_replace=True,
    )

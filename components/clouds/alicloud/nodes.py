"""Node pools: those of ACK, or ECS instances that the program makes one by one.

Metadata need a token, and on ECS a rule of each machine keeps pods with a network of their own away from them
(`boot/machine.sh`); system disks are encrypted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pulumi
import pulumi_alicloud as alicloud

from ... import inputs
from ..common.api_server import ApiServer
from ..common.kubeconfigs import as_base64
from ..common.user_data import kubeadm_control_plane, kubeadm_worker
from ..interface import MachineParts, PoolSpec
from . import user_data
from .control_plane import API_PORT
from .settings import tags

DISK_GIB = 120
_ARM = re.compile(r"ecs\.[a-z]+\d+[yr]\w*\..+")
"""Instance types with Alibaba Cloud's own processors (y) or Ampere's (r)."""


def make(name: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> list[MachineParts] | None:
    """The pool `name` of the cluster; None where ACK makes and names the machines."""
    full = f"{spec.cluster_name}-{name}"
    if spec.join["control_plane"] == "ack":
        _of_ack(name, full, spec, opts)
        return None
    found: list[MachineParts] = []
    made: list[pulumi.Resource] = []
    for index in range(spec.count):
        # One after another, so that a change never restarts etcd's majority, or replaces all workers, at once.
        made, parts = _machine(f"{full}-{index}", index, spec, _after(opts, made))
        found.append(parts)
    if spec.role == "control-plane":
        endpoint = pulumi.Output.concat("https://", spec.join["endpoint"], f":{API_PORT}")
        ApiServer(full, endpoint=endpoint, authority=spec.join["certificate_authority"], opts=_after(opts, made))
    return found


def _of_ack(name: str, full: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> None:
    most = spec.join.get(f"most/{name}")
    scaling = pulumi.Output.from_input(most).apply(int) if most is not None else None
    alicloud.cs.NodePool(
        full,
        node_pool_name=full,
        cluster_id=spec.cluster_id,
        vswitch_ids=[spec.subnet_ids[zone] for zone in sorted(set(spec.zones))],
        security_group_ids=[spec.join["node_security_group_id"]],
        instance_types=[spec.type],
        instance_charge_type="PostPaid",
        image_type=pulumi.Output.from_input(spec.type).apply(image_type),
        system_disk_category="cloud_essd",
        system_disk_size=DISK_GIB,
        system_disk_encrypted=True,
        instance_metadata_options={"http_tokens": "required"},
        multi_az_policy="BALANCE",
        desired_size=None if scaling is not None else str(spec.count),
        scaling_config={"enable": True, "min_size": spec.count, "max_size": scaling} if scaling is not None else None,
        labels=[{"key": key, "value": value} for key, value in sorted(spec.labels.items())],
        # ACK marks the machines as the cluster's itself.
        tags=tags(full),
        # With autoscaling, the number of machines is the autoscaler's.
        opts=pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(ignore_changes=["desiredSize"] if scaling is not None else [])
        ),
    )


def image_type(machine_type: str) -> str:
    """ACK's name for the system of an instance type."""
    return "AliyunLinux3Arm64" if _ARM.fullmatch(machine_type) else "AliyunLinux3"


def _machine(
    full: str, index: int, spec: PoolSpec, opts: pulumi.ResourceOptions
) -> tuple[list[pulumi.Resource], MachineParts]:
    """A machine with what it needs, and what the program knows of its node."""
    inputs.check_dns_label("name", full)
    plane = spec.role == "control-plane"
    zone = spec.zones[index % len(spec.zones)]
    groups = [spec.join["node_security_group_id"]]
    if plane:
        groups.append(spec.join["control_plane_security_group_id"])
    instance = alicloud.ecs.Instance(
        full,
        # Its node has the same name.
        instance_name=full,
        host_name=full,
        instance_type=spec.type,
        instance_charge_type="PostPaid",
        image_id=spec.join["image"],
        vswitch_id=spec.subnet_ids[zone],
        security_groups=groups,
        internet_max_bandwidth_out=0,
        system_disk_category="cloud_essd",
        system_disk_size=DISK_GIB,
        system_disk_encrypted=True,
        http_endpoint="enabled",
        http_tokens="required",
        # ECS does not enforce it yet: the rule in boot/machine.sh does.
        http_put_response_hop_limit=1,
        # Packets of pods carry the pods' addresses.
        source_dest_check=False,
        user_data=_start(spec, first=plane and index == 0).apply(as_base64),
        tags=tags(full, spec.cluster_id),
        opts=pulumi.ResourceOptions.merge(opts, _changes(plane)),
    )
    role = spec.join["control_plane_role" if plane else "node_role"]
    made: list[pulumi.Resource] = [
        instance,
        alicloud.ecs.RamRoleAttachment(full, instance_id=instance.id, ram_role_name=role, opts=opts),
    ]
    if plane:
        attached = alicloud.nlb.ServerGroupServerAttachment(
            full,
            server_group_id=spec.join["server_group_id"],
            server_id=instance.id,
            server_type="Ecs",
            port=API_PORT,
            opts=opts,
        )
        made.append(attached)
    provider_id = pulumi.Output.concat(spec.join["region"], ".", instance.id)
    return made, MachineParts(pulumi.Output.from_input(full), provider_id)


def _after(opts: pulumi.ResourceOptions, made: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=made))


def _changes(plane: bool) -> pulumi.ResourceOptions:
    """What of a machine only counts when it starts for the first time.

    The provider would write it into a machine that runs, and restart it to no effect. The start script is that of the
    machine's creation: it has the version and the labels, and a new script must not replace a whole pool. Workers are
    replaced for another image or type; machines of the control plane by people, as members of etcd must be.
    """
    if plane:
        return pulumi.ResourceOptions(ignore_changes=["userData", "imageId"])
    return pulumi.ResourceOptions(
        ignore_changes=["userData"],
        replace_on_changes=["imageId", "instanceType"],
        # The old machine goes first, because its name must be free.
        delete_before_replace=True,
    )


def _start(spec: PoolSpec, *, first: bool) -> pulumi.Output[str]:
    facts = pulumi.Output.all(cluster=spec.cluster_name, join=dict(spec.join), labels=dict(spec.labels))
    machine = user_data.machine()
    if spec.role == "control-plane":
        return facts.apply(
            lambda known: kubeadm_control_plane(machine, known["cluster"], known["join"], known["labels"], first=first)
        )
    return facts.apply(lambda known: kubeadm_worker(machine, known["cluster"], known["join"], known["labels"]))

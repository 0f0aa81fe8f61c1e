"""Node pools: launch templates and what starts machines by them, auto-scaling groups or EKS's managed node groups.

AWS names the machines, so a pool is known by its number and its label. Metadata need a session (IMDSv2) and are out of
the reach of pods; volumes are encrypted.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from ..common.user_data import kubeadm_control_plane, kubeadm_worker
from ..interface import PoolSpec
from . import user_data, volumes
from .settings import CLUSTER_TAG, OWNED, tags

LABEL_TAG = "k8s.io/cluster-autoscaler/node-template/label/"
"""Before a node label's key: the tag by which the cluster autoscaler knows what an empty group's nodes would carry."""
VOLUME_GIB = 50
EKS_IMAGE = "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{architecture}/standard/recommended/image_id"
PLAIN_IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{architecture}"
MANAGED_IMAGES = {"x86_64": "AL2023_x86_64_STANDARD", "arm64": "AL2023_ARM_64_STANDARD"}


def architecture(machine_type: str) -> str:
    """Of an instance type: AWS's own processors (Graviton) have a `g` after the generation's number."""
    family = machine_type.partition(".")[0]
    return "arm64" if re.fullmatch(r"a1|[a-z]+\d+g[a-z]*(-[a-z0-9]+)?", family) else "x86_64"


def make(name: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> None:
    """The pool `name` of the cluster."""
    full = f"{spec.cluster_name}-{name}"
    if spec.role == "control-plane":
        _control_plane(full, spec, opts)
        return
    if spec.join["nodes"] == "eks":
        _managed_group(full, spec, opts)
        return
    template = launch_template(full, spec, _worker_start(spec), [spec.join["node_security_group_id"]], opts)
    group(full, spec, template, spec.count, spec.zones, opts)


def launch_template(
    full: str,
    spec: PoolSpec,
    start: pulumi.Output[str] | None,
    security_group_ids: Sequence[pulumi.Input[str]],
    opts: pulumi.ResourceOptions,
    profile_arn: pulumi.Input[str] | None = None,
) -> aws.ec2.LaunchTemplate:
    """How the pool's machines are made; without `start` (user data), image, role and type are the node group's."""
    marks = machine_tags(full, spec)
    encoded = start.apply(lambda text: base64.b64encode(text.encode()).decode()) if start is not None else None
    return aws.ec2.LaunchTemplate(
        full,
        image_id=_image(spec) if start is not None else None,
        instance_type=spec.type if start is not None else None,
        iam_instance_profile={"arn": profile_arn or spec.join["instance_profile_arn"]} if start is not None else None,
        user_data=encoded,
        vpc_security_group_ids=list(security_group_ids),
        metadata_options={
            "http_endpoint": "enabled",
            "http_tokens": "required",
            # One hop: a pod that has its own network does not reach its node's role.
            "http_put_response_hop_limit": 1,
        },
        block_device_mappings=[
            {
                "device_name": "/dev/xvda",
                "ebs": {
                    "volume_size": VOLUME_GIB,
                    "volume_type": "gp3",
                    "encrypted": "true",
                    "delete_on_termination": "true",
                },
            }
        ],
        tag_specifications=[{"resource_type": kind, "tags": marks} for kind in ("instance", "volume")],
        update_default_version=True,
        tags=tags(full),
        opts=opts,
    )


def machine_tags(full: str, spec: PoolSpec) -> dict[str, pulumi.Input[str]]:
    """What each machine carries: whose it is, and the labels of its node."""
    labels: Mapping[str, pulumi.Input[str]] = {f"{LABEL_TAG}{key}": value for key, value in spec.labels.items()}
    return {**tags(full, spec.cluster_name), **labels}


def group(
    full: str,
    spec: PoolSpec,
    template: aws.ec2.LaunchTemplate,
    size: int,
    zones: Sequence[str],
    opts: pulumi.ResourceOptions,
    target_group_arns: Sequence[pulumi.Input[str]] = (),
) -> aws.autoscaling.Group:
    """`size` machines, spread over the zones; those of an older template are replaced a few at a time.

    With target groups they are up once these find them healthy, and are replaced by people.
    """
    behind = bool(target_group_arns)
    marks = machine_tags(full, spec)
    if spec.join["control_plane"] == "eks":
        # Only machines carry it: on their root volumes it would let the driver change these too.
        marks[volumes.MACHINE_TAG] = spec.cluster_name
    return aws.autoscaling.Group(
        full,
        min_size=size,
        max_size=size,
        desired_capacity=size,
        vpc_zone_identifiers=[spec.subnet_ids[zone] for zone in sorted(set(zones))],
        launch_template={"id": template.id, "version": template.latest_version.apply(str)},
        instance_refresh=None if behind else {"strategy": "Rolling", "preferences": {"min_healthy_percentage": 90}},
        tags=[{"key": key, "value": value, "propagate_at_launch": True} for key, value in marks.items()],
        target_group_arns=list(target_group_arns) or None,
        wait_for_elb_capacity=size if behind else None,
        wait_for_capacity_timeout="20m" if behind else None,
        opts=opts,
    )


def _managed_group(full: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> None:
    template = launch_template(full, spec, None, [spec.join["node_security_group_id"]], opts)
    aws.eks.NodeGroup(
        full,
        cluster_name=spec.cluster_id,
        node_role_arn=spec.join["node_role_arn"],
        subnet_ids=[spec.subnet_ids[zone] for zone in sorted(set(spec.zones))],
        scaling_config={"min_size": spec.count, "max_size": max(spec.count, 1), "desired_size": spec.count},
        update_config={"max_unavailable_percentage": 33},
        ami_type=pulumi.Output.from_input(spec.type).apply(lambda type_: MANAGED_IMAGES[architecture(type_)]),
        instance_types=[spec.type],
        version=spec.join["kubernetes_version"],
        launch_template={"id": template.id, "version": template.latest_version.apply(str)},
        labels=spec.labels,
        tags={**tags(full), f"{CLUSTER_TAG}{spec.cluster_name}": OWNED},
        opts=opts,
    )


def _control_plane(full: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> None:
    """A group of one for each machine: etcd's members are replaced one by one, by people, never all by a group."""
    groups = [spec.join["control_plane_security_group_id"]]
    profile = spec.join["control_plane_profile_arn"]
    templates = {
        first: launch_template(label, spec, _plane_start(spec, first), groups, opts, profile)
        for first, label in ((True, f"{full}-first"), (False, full))
        if first or spec.count > 1
    }
    for index in range(spec.count):
        zone = spec.zones[index % len(spec.zones)]
        arns = [spec.join["target_group_arn"]]
        group(f"{full}-{index}", spec, templates[index == 0], 1, [zone], opts, target_group_arns=arns)


def _image(spec: PoolSpec) -> pulumi.Output[str]:
    """The newest image, which EC2 looks up by AWS's public parameter when a machine starts."""
    parameter = EKS_IMAGE if spec.join["control_plane"] == "eks" else PLAIN_IMAGE

    def resolved(values: list[str]) -> str:
        return f"resolve:ssm:{parameter.format(version=values[0], architecture=architecture(values[1]))}"

    return pulumi.Output.all(spec.join["kubernetes_version"], spec.type).apply(resolved)


def _worker_start(spec: PoolSpec) -> pulumi.Output[str]:
    """The user data of a worker."""
    facts = pulumi.Output.all(cluster=spec.cluster_id, join=dict(spec.join), labels=dict(spec.labels))
    if spec.join["control_plane"] == "eks":
        return facts.apply(lambda known: user_data.eks_node(known["cluster"], known["join"], known["labels"]))
    machine = user_data.machine()
    return facts.apply(lambda known: kubeadm_worker(machine, known["cluster"], known["join"], known["labels"]))


def _plane_start(spec: PoolSpec, first: bool) -> pulumi.Output[str]:
    """The user data of a control-plane machine."""
    facts = pulumi.Output.all(cluster=spec.cluster_name, join=dict(spec.join), labels=dict(spec.labels))
    machine = user_data.machine()
    return facts.apply(
        lambda known: kubeadm_control_plane(machine, known["cluster"], known["join"], known["labels"], first=first)
    )

"""mycloud in the shape that the components need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from cloud_controller.clouds.mycloud.annotations import INGRESS_NODE
from cloud_controller.clouds.mycloud.config import Config as CloudConfig
from cloud_controller.clouds.mycloud.config import render
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.load_balancers.model import CLUSTER_TAG

from ... import inputs
from ...load_balancer_service_args import LoadBalancerServiceArgs
from ...stack_model import StackConfig
from ..interface import CloudAdapter, ClusterParts, MachineParts, ManagerSettings, NetworkParts, PoolSpec
from .resources import Cluster, Machine, Network, Subnet
from .stack_section import CONTROLLER_TOKEN, TOKEN, MycloudConfig

REGION = "local"
"""mycloud's only region."""


class MycloudAdapter(CloudAdapter):
    """Makes mycloud's resources; holds nothing."""

    def network(
        self, name: str, zones: Sequence[str], settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> NetworkParts:
        network = Network(name, name=name, tags=_stack_tags(), opts=opts)
        subnets = {
            zone: Subnet(
                f"{name}-{zone}",
                name=f"{name}-{zone}",
                network_id=network.id,
                zone=zone,
                tags=_stack_tags(),
                opts=opts,
            ).id
            for zone in zones
        }
        return NetworkParts(network.id, network.pod_cidr, subnets)

    def cluster(
        self, name: str, network: NetworkParts, settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> ClusterParts:
        cluster = Cluster(name, name=name, network_id=network.id, tags=_stack_tags(), opts=opts)
        return ClusterParts(cluster.id, cluster.kubeconfig, cluster)

    def pool(self, name: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> list[MachineParts]:
        return [
            _machine(f"{spec.cluster_name}-{name}-{index}", spec.zones[index % len(spec.zones)], spec, opts)
            for index in range(spec.count)
        ]

    def balanced(
        self, config: StackConfig, args: LoadBalancerServiceArgs, subnet_ids: Mapping[str, pulumi.Output[str]]
    ) -> LoadBalancerServiceArgs:
        if any(port.get("protocol") == "UDP" for port in args["ports"]):
            return args
        return {**args, "settings": {"listener_max_qps": 10_000}}

    def manager_settings(self, config: StackConfig, role: pulumi.Output[str] | None) -> ManagerSettings:
        expires = config.section(MycloudConfig).token_expires
        return {"credential_expires": expires} if expires is not None else {}

    def cloud_config(
        self,
        config: StackConfig,
        cluster_id: pulumi.Input[str],
        network_id: pulumi.Input[str],
        facts: Mapping[str, pulumi.Input[str]],
    ) -> pulumi.Output[str]:
        endpoint = config.section(MycloudConfig).endpoint
        token = pulumi.Output.secret(config.secret(CONTROLLER_TOKEN) or config.secret(TOKEN))
        return pulumi.Output.all(token, cluster_id, network_id).apply(
            lambda values: render(
                CloudConfig(endpoint=endpoint, token=values[0], cluster_id=values[1], network_id=values[2])
            )
        )


def _machine(name: str, zone: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> MachineParts:
    inputs.check_dns_label("name", name)
    machine = Machine(
        name,
        name=name,
        subnet_id=spec.subnet_ids[zone],
        cluster_id=spec.cluster_id,
        type=spec.type,
        role=spec.role,
        node_labels=spec.labels,
        # "false" too: nodes follow the tag, and without one they would stay as they were.
        tags={**_stack_tags(), CLUSTER_TAG: spec.cluster_id, INGRESS_NODE: "true" if spec.ingress else "false"},
        opts=opts,
    )
    # Of what is known while an update is previewed: a machine's outputs are not.
    made = machine.id.apply(lambda machine_id: provider_id({"id": machine_id, "region": REGION, "zone": zone}))
    return MachineParts(machine.name, made)


def _stack_tags() -> dict[str, str]:
    """Whose the resource is: two stacks of one cloud account never share one, though they use the same names."""
    return {"pulumi.com/project": pulumi.get_project(), "pulumi.com/stack": pulumi.get_stack()}

"""tinycloud in the components' shape: nothing is made, everything is there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.clouds.interface import CloudAdapter, ClusterParts, MachineParts, NetworkParts, PoolSpec
from components.stack_model import StackConfig
from tinycloud.stack_section import TinyConfig


class TinyAdapter(CloudAdapter):
    def network(
        self, name: str, zones: Sequence[str], settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> NetworkParts:
        del settings, opts
        subnets = {zone: pulumi.Output.from_input(zone) for zone in zones}
        return NetworkParts(pulumi.Output.from_input(name), pulumi.Output.from_input("10.1.0.0/16"), subnets)

    def cluster(
        self, name: str, network: NetworkParts, settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> ClusterParts:
        del network, settings
        resource = pulumi.ComponentResource("tinycloud:index:Cluster", name, None, opts)
        section = pulumi.Config("cloud-controller").require_object("tiny")
        return ClusterParts(pulumi.Output.from_input(name), pulumi.Output.secret(section["kubeconfig"]), resource)

    def pool(self, name: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> list[MachineParts] | None:
        del name, opts
        names = [f"{spec.role}-{index}" for index in range(spec.count)]
        return [MachineParts(pulumi.Output.from_input(n), pulumi.Output.from_input(f"tiny://{n}")) for n in names]

    def cloud_config(
        self,
        config: StackConfig,
        cluster_id: pulumi.Input[str],
        network_id: pulumi.Input[str],
        facts: Mapping[str, pulumi.Input[str]],
    ) -> pulumi.Output[str]:
        del network_id, facts
        machines = config.section(TinyConfig).machines
        known = pulumi.Output.from_input(cluster_id)
        return pulumi.Output.secret(known.apply(lambda found: json.dumps({"cluster": found, "machines": machines})))

"""Clusters and machines."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from local.mycloud.models.common import CloudObject, Create, DnsLabel, Strict

MACHINE_TYPES = ("m1.small", "m1.medium", "m1.large")

PROCESS_ENDED = "its process ended"
"""The state reason of a machine that stopped without a request."""


class Cluster(CloudObject):
    """A Kubernetes control plane that the cloud runs."""

    network_id: str
    version: str | None = None
    endpoint: str | None = None
    certificate_authority: str | None = None


class Machine(CloudObject):
    """A machine that boots into a cluster as a node. `simulated`: it has no process and never registers a node."""

    network_id: str
    subnet_id: str
    zone: str
    region: str
    type: str
    cluster_id: str
    role: Literal["control-plane", "worker"]
    private_ips: list[str]
    ipv6_addresses: list[str] = []
    node_labels: dict[str, str] = {}
    register_provider_id: bool = False
    simulated: bool = False
    terminated_at: str | None = None


class MachineRecord(Machine):
    """`intent`: the machine's intended state. `reboot`: it must first shut down once."""

    intent: Literal["running", "stopped", "terminated"] = "running"
    reboot: bool = False
    labelled: bool = False


class CreateCluster(Create):
    network_id: str


class CreateMachine(Create):
    name: DnsLabel
    subnet_id: str
    type: Literal["m1.small", "m1.medium", "m1.large"]
    cluster_id: str
    role: Literal["control-plane", "worker"]
    node_labels: dict[str, str] = {}
    register_provider_id: bool = False


class CredentialsRequest(Strict):
    ttl_seconds: Annotated[int, Field(ge=60, le=86400)] = 3600


class SimulateMachines(Strict):
    """Machines without processes, spread over the subnets in turn; their names are the prefix and a number."""

    cluster_id: str
    subnet_ids: Annotated[list[str], Field(min_length=1)]
    count: Annotated[int, Field(ge=1, le=10000)]
    name_prefix: Annotated[str, Field(pattern="^[a-z0-9][-a-z0-9]*$", max_length=58)] = "node-"
    tags: dict[str, str] = {}


class Kubeconfig(BaseModel):
    kubeconfig: str


class MadeMachines(BaseModel):
    """The number of machines made."""

    machines: int

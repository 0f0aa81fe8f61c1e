"""A node pool: machines of one kind, spread over zones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from . import clouds, inputs
from .arguments import checked
from .clouds.interface import MachineParts, PoolSpec

POOL_LABEL = "cloud-controller/pool"
"""The label by which workloads choose a pool's nodes."""

ROLES = ("control-plane", "worker")


class NodePoolArgs(TypedDict):
    """Arguments of `NodePool`. What decides how many resources there are, and their names, is plain."""

    cloud: str
    """The cloud that the machines run in."""
    cluster_name: str
    """Begins the machines' names."""
    cluster_id: pulumi.Input[str]
    """The cluster that they join, and the value of their cluster tag."""
    subnet_ids: Mapping[str, pulumi.Input[str]]
    """The network's subnets by zone."""
    join: NotRequired[Mapping[str, pulumi.Input[str]]]
    """What machines need to join their cluster (`Cluster.join`), where that is more than its id."""
    count: int
    """How many machines; each keeps its name when the number changes."""
    type: pulumi.Input[str]
    """The cloud's machine type."""
    zones: Sequence[str]
    """Machine I is made in zone I modulo their number; machines of a scaling group are spread over them."""
    role: NotRequired[str]
    """`worker` (default) or `control-plane`."""
    ingress: NotRequired[bool]
    """Whether load balancers send their traffic to these machines; False if not given."""
    labels: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Labels of the nodes, beside `cloud-controller/pool`."""


class NodePool(pulumi.ComponentResource):
    """`count` machines named CLUSTER-POOL-INDEX, POOL being the component's name, or as the cloud names them itself.

    `machines` has their names (which are their nodes') and provider IDs, in the order of their indices; it is empty
    where the cloud names them. Their nodes carry the label `cloud-controller/pool`. `pool` has this component's name.
    """

    @inputs.naming_itself
    def __init__(self, name: str, args: NodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        args = checked(NodePoolArgs, args)
        if not args.get("join"):
            args.pop("join", None)
        role = args.get("role", "worker")
        inputs.check_dns_label("name", name)
        inputs.check("count", args["count"], "an integer of at least 0", lambda v: v >= 0)
        inputs.check("role", role, ", ".join(ROLES), lambda v: v in ROLES)
        if not args["zones"]:
            raise inputs.WrongInput("zones", "empty; allowed: at least one zone")
        for index, zone in enumerate(args["zones"]):
            known = sorted(args["subnet_ids"])
            inputs.check(f"zones[{index}]", zone, f"the network's zones: {', '.join(known)}", known.__contains__)
        for key, value in args.get("labels", {}).items():
            problem = (
                "is set by the pool itself; allowed: other labels"
                if key == POOL_LABEL
                else inputs.label_problem(key, value)
            )
            if problem:
                raise inputs.WrongInput(f"labels[{key}]", problem)
        adapter = clouds.descriptor(args["cloud"]).adapter()
        super().__init__("cloudcontroller:index:NodePool", name, dict(args), opts)
        # Annotated here and not on the class, where the SDK would take it for the type of an output of that name.
        spec = PoolSpec(
            cluster_name=args["cluster_name"],
            cluster_id=args["cluster_id"],
            join=args.get("join", {}),
            subnet_ids=args["subnet_ids"],
            count=args["count"],
            type=args["type"],
            zones=args["zones"],
            role=role,
            ingress=args.get("ingress", False),
            labels={POOL_LABEL: name, **args.get("labels", {})},
        )
        made = adapter.pool(name, spec, pulumi.ResourceOptions(parent=self))
        self.machines: list[MachineParts] = made or []
        self.pool = name
        # Of machines that the cloud names; those in `machines` are known one by one.
        self.unnamed = args["count"] if made is None else 0
        self.register_outputs({"machines": [{"name": m.name, "provider_id": m.provider_id} for m in self.machines]})

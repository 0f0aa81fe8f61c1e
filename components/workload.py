"""A workload: replicas of one container, addressed by their pod's own address."""

from __future__ import annotations

from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import ContainerArgsDict, EnvVarArgsDict

from . import inputs
from .arguments import checked

APP_LABEL = "app.kubernetes.io/name"

PROTOCOLS = ("TCP", "UDP")


class WorkloadArgs(TypedDict):
    """Arguments of `Workload`."""

    image: pulumi.Input[str]
    """The container's image. It listens on $PORT of $POD_IP."""
    port: pulumi.Input[int]
    """The value of $PORT, and the target of a Service."""
    protocol: NotRequired[str]
    """`TCP` (default) or `UDP`."""
    replicas: NotRequired[pulumi.Input[int]]
    """How many pods; 2 if not given."""
    health_path: NotRequired[pulumi.Input[str]]
    """The path of its HTTP readiness probe; without one, it is ready once it runs."""
    namespace: NotRequired[pulumi.Input[str]]
    """`default` if not given."""


class Workload(pulumi.ComponentResource):
    """A Deployment named as the component, its pods spread over nodes.

    `selector` has the labels by which a Service finds the pods.
    """

    @inputs.naming_itself
    def __init__(self, name: str, args: WorkloadArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        args = checked(WorkloadArgs, args)
        protocol = args.get("protocol", "TCP")
        inputs.check_dns_label("name", name)
        inputs.check_port("port", args["port"])
        inputs.check("protocol", protocol, ", ".join(PROTOCOLS), lambda v: v in PROTOCOLS)
        super().__init__("cloudcontroller:index:Workload", name, dict(args), opts)
        # Annotated here and not on the class, where the SDK would take it for the type of an output of that name.
        self.selector: dict[str, str] = {APP_LABEL: name}
        container: ContainerArgsDict = {
            "name": name,
            "image": args["image"],
            "env": [
                {"name": "PORT", "value": pulumi.Output.from_input(args["port"]).apply(lambda port: str(int(port)))},
                _from_field("POD_IP", "status.podIP"),
                _from_field("POD_NAME", "metadata.name"),
                _from_field("NODE_NAME", "spec.nodeName"),
            ],
            "ports": [{"name": "main", "container_port": args["port"], "protocol": protocol}],
            "resources": {
                "requests": {"cpu": "10m", "memory": "32Mi"},
                "limits": {"cpu": "500m", "memory": "128Mi"},
            },
        }
        if "health_path" in args:
            container["readiness_probe"] = {
                "http_get": {"path": args["health_path"], "port": "main"},
                "period_seconds": 2,
            }
        Deployment(
            name,
            metadata={"name": name, "namespace": args.get("namespace", "default"), "labels": self.selector},
            spec={
                "replicas": args.get("replicas", 2),
                "selector": {"match_labels": self.selector},
                "template": {
                    "metadata": {"labels": self.selector},
                    "spec": {
                        "containers": [container],
                        "topology_spread_constraints": [
                            {
                                "max_skew": 1,
                                "topology_key": "kubernetes.io/hostname",
                                "when_unsatisfiable": "ScheduleAnyway",
                                "label_selector": {"match_labels": self.selector},
                            }
                        ],
                    },
                },
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"selector": self.selector})


def _from_field(variable: str, path: str) -> EnvVarArgsDict:
    return {"name": variable, "value_from": {"field_ref": {"field_path": path}}}

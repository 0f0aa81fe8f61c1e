"""A stack of Kubernetes objects, run by Pulumi's real CLI on a real API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pulumi
from pulumi import ResourceOptions

from cloud_controller.kube import PatchType
from cloud_controller.kube.client import Kube
from cloud_controller.kube.resources import NAMESPACES
from local.control_plane.control_plane import ControlPlane
from local.plugins.kubernetes.provider import KubernetesProvider
from tests.local.plugins.stack_with_cli import StackWithCli


class Cluster:
    """A stack of Kubernetes objects in a namespace of its own."""

    def __init__(self, stack: StackWithCli, kubeconfig: str, kube: Kube, namespace: str) -> None:
        self.stack = stack
        self.kubeconfig = kubeconfig
        self.kube = kube
        self.namespace = namespace
        self.maps = kube.resource("v1", "ConfigMap")

    def apply(self, name: str, data: dict[str, str]) -> None:
        """A foreign object."""
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self.namespace},
            "data": data,
        }
        self.kube.patch(self.maps, name, body, self.namespace, type=PatchType.APPLY, field_manager="theirs", force=True)

    def data(self) -> dict[str, Any]:
        """The data of each ConfigMap, by name."""
        found = self.kube.list(self.maps, self.namespace).items
        return {m["metadata"]["name"]: m.get("data") for m in found if m["metadata"]["name"] != "kube-root-ca.crt"}

    def program(self, body: Callable[[ResourceOptions], object]) -> Callable[[], None]:
        """A program whose resources are of this cluster."""

        def run() -> None:
            from pulumi_kubernetes import Provider

            body(ResourceOptions(provider=Provider("cluster", kubeconfig=pulumi.Output.secret(self.kubeconfig))))

        return run

    def config_map(self, resource: str, opts: ResourceOptions, *, name: str = "settings", **data: str) -> Any:
        from pulumi_kubernetes.core.v1 import ConfigMap

        return ConfigMap(resource, metadata={"name": name, "namespace": self.namespace}, data=data, opts=opts)


@contextmanager
def cluster_with_cli(control_plane: ControlPlane, folder: Path) -> Iterator[Cluster]:
    """A stack without objects, whose provider is ours."""
    kubeconfig = control_plane.kubeconfig("admin", ["system:masters"], timedelta(hours=1))
    kube = Kube.from_kubeconfig(kubeconfig)
    namespace = f"test-{uuid4().hex[:12]}"
    kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    stack = StackWithCli(folder)
    stack.factories["kubernetes"] = KubernetesProvider
    yield Cluster(stack, kubeconfig, kube, namespace)
    kube.close()

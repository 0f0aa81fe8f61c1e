"""The resource options with Kubernetes objects and a real API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pulumi
import pytest
from pulumi import Alias, CustomTimeouts, ResourceOptions

from cloud_controller.kube.client import Kube
from cloud_controller.kube.resources import NAMESPACES
from local.control_plane.control_plane import ControlPlane
from local.plugins.kubernetes.provider import KubernetesProvider

pytestmark = pytest.mark.control_plane


class Cluster:
    """A stack of Kubernetes objects in a namespace of its own."""

    def __init__(self, stack: Any, kubeconfig: str, kube: Kube, namespace: str) -> None:
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
        self.kube.create(self.maps, body)

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


@pytest.fixture
def cluster(control_plane: ControlPlane, stack: Any) -> Iterator[Cluster]:
    kubeconfig = control_plane.kubeconfig("admin", ["system:masters"], timedelta(hours=1))
    kube = Kube.from_kubeconfig(kubeconfig)
    namespace = f"test-{uuid4().hex[:12]}"
    kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    stack.factories["kubernetes"] = lambda r: KubernetesProvider(r.inputs)
    yield Cluster(stack, kubeconfig, kube, namespace)
    kube.close()


def merged(one: ResourceOptions, **more: Any) -> ResourceOptions:
    both = ResourceOptions.merge(one, ResourceOptions(**more))
    assert both is not None
    return both


def test_an_object_that_exists_is_imported_and_then_managed(cluster: Cluster) -> None:
    cluster.apply("settings", {"a": "1"})
    there = f"{cluster.namespace}/settings"

    def program(value: str, **options: Any) -> Callable[[], None]:
        return cluster.program(lambda opts: cluster.config_map("map", merged(opts, **options), a=value))

    different = cluster.stack.preview(program("2", import_=there))
    assert different.ok and "do not match the existing resource: data" in different.warnings[0]
    assert not cluster.stack.up(program("2", import_=there)).ok and cluster.data() == {"settings": {"a": "1"}}

    preview = cluster.stack.preview(program("1", import_=there))
    assert preview.warnings == []
    outcome = cluster.stack.up(program("1", import_=there))
    assert outcome.ok, outcome.errors
    assert outcome.counts["import"] == 1
    assert cluster.stack.resources()["map"].id == there
    assert set(cluster.stack.up(program("1", import_=there)).counts) == {"same"}
    assert set(cluster.stack.up(program("1")).counts) == {"same"}
    assert cluster.stack.destroy().ok and cluster.data() == {}


def test_a_foreign_object_can_be_read(cluster: Cluster) -> None:
    from pulumi_kubernetes.core.v1 import ConfigMap

    cluster.apply("theirs", {"a": "1"})

    def body(opts: ResourceOptions) -> None:
        found = ConfigMap.get("found", f"{cluster.namespace}/theirs", opts=opts)
        pulumi.export("a", found.data.apply(lambda data: data["a"]))

    assert cluster.stack.preview(cluster.program(body)).summary.new_outputs == {"a": "1"}
    assert cluster.stack.up(cluster.program(body)).ok
    assert cluster.stack.resources()["found"].external
    again = cluster.stack.up(cluster.program(body))
    assert again.ok and set(again.counts) == {"same", "read"}
    assert set(cluster.stack.refresh().counts) == {"same"}
    assert cluster.stack.destroy().ok and list(cluster.data()) == ["theirs"]


def test_a_missing_object_is_neither_imported_nor_read(cluster: Cluster) -> None:
    from pulumi_kubernetes.core.v1 import ConfigMap

    for body in (
        lambda opts: cluster.config_map("map", merged(opts, import_=f"{cluster.namespace}/settings")),
        lambda opts: ConfigMap.get("map", f"{cluster.namespace}/settings", opts=opts),
    ):
        outcome = cluster.stack.preview(cluster.program(body))
        assert not outcome.ok and "does not exist" in outcome.errors[0]


def test_a_renamed_object_with_a_renamed_provider_stays(cluster: Cluster) -> None:
    from pulumi_kubernetes import Provider

    def program(suffix: str, *aliases: Alias) -> Callable[[], None]:
        def run() -> None:
            aliased = ResourceOptions(aliases=[Alias(name="cluster")])
            provider = Provider(f"cluster{suffix}", kubeconfig=pulumi.Output.secret(cluster.kubeconfig), opts=aliased)
            cluster.config_map(f"map{suffix}", ResourceOptions(provider=provider, aliases=list(aliases)), a="1")

        return run

    cluster.stack.up(program(""))
    before = cluster.kube.get(cluster.maps, "settings", cluster.namespace)["metadata"]["uid"]

    renamed = program("2", Alias(name="map"))
    assert set(cluster.stack.preview(renamed).counts) == {"same"}
    assert set(cluster.stack.up(renamed).counts) == {"same"}
    assert cluster.kube.get(cluster.maps, "settings", cluster.namespace)["metadata"]["uid"] == before


def test_replacement_retention_and_ignore_options_work_on_kubernetes_objects(cluster: Cluster) -> None:
    def program(name: str, a: str, label: str, trigger: str) -> Callable[[], None]:
        def body(opts: ResourceOptions) -> None:
            from pulumi_kubernetes.core.v1 import ConfigMap

            options = merged(
                opts,
                retain_on_delete=True,
                replacement_trigger=trigger,
                replace_on_changes=["metadata.labels.tier"],
                ignore_changes=["data.a"],
                custom_timeouts=CustomTimeouts(create="1m", delete="1m"),
            )
            metadata: Any = {"name": name, "namespace": cluster.namespace, "labels": {"tier": label}}
            ConfigMap("map", metadata=metadata, data={"a": a}, opts=options)

        return cluster.program(body)

    up = cluster.stack.up
    assert up(program("one", "1", "x", "t")).ok
    assert set(up(program("one", "2", "x", "t")).counts) == {"same"} and cluster.data() == {"one": {"a": "1"}}
    assert up(program("two", "2", "x", "t")).counts["replace"] == 1
    assert cluster.data() == {"one": {"a": "1"}, "two": {"a": "2"}}, "the replaced one is retained"
    assert cluster.stack.preview(program("two", "2", "y", "t")).counts["replace"] == 1
    assert cluster.stack.preview(program("two", "2", "x", "u")).counts["replace"] == 1


@pytest.mark.parametrize("verb", ["preview", "up"])
def test_the_error_for_a_rejected_secret_does_not_quote_it(cluster: Cluster, verb: str) -> None:
    def body(opts: ResourceOptions) -> None:
        no_text: Any = pulumi.Output.secret({"inner": "hushhush"})
        cluster.config_map("map", opts, token=no_text)

    outcome = getattr(cluster.stack, verb)(cluster.program(body))

    assert "[secret]" in outcome.errors[0] and "hushhush" not in repr(outcome.events)

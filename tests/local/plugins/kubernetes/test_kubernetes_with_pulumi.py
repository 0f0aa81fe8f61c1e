"""Our Kubernetes provider under Pulumi's real CLI, with a real API server."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi import CustomTimeouts, ResourceOptions

from tests.local.plugins.kubernetes.cluster_with_cli import Cluster
from tests.local.plugins.stack_with_cli import Outcome

SPELLINGS = Path(__file__).parent / "recordings" / "spellings.py"
NEVER_SAME = {"update": 2, "same": 15}
"""`rules: []`, which the API server keeps as null, and `labels: {}` of a custom resource, which it drops."""

pytestmark = [pytest.mark.cli, pytest.mark.control_plane]


def merged(one: ResourceOptions, **more: Any) -> ResourceOptions:
    both = ResourceOptions.merge(one, ResourceOptions(**more))
    assert both is not None
    return both


def test_an_object_that_exists_is_imported_and_then_managed(cluster: Cluster) -> None:
    cluster.apply("settings", {"a": "1"})
    there = f"{cluster.namespace}/settings"

    def program(value: str, **options: Any) -> Callable[[], None]:
        return cluster.program(lambda opts: cluster.config_map("map", merged(opts, **options), a=value))

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

    assert 'a: "1"' in cluster.stack.preview(cluster.program(body)).output
    assert cluster.stack.up(cluster.program(body)).ok
    again = cluster.stack.up(cluster.program(body))
    assert again.ok and set(again.counts) == {"same"}
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


def test_an_object_that_is_not_ready_is_kept_and_deleted_by_the_next_update(cluster: Cluster) -> None:
    def body(opts: ResourceOptions) -> None:
        from pulumi_kubernetes.core.v1 import Pod

        short = {"pulumi.com/timeoutSeconds": "1"}
        metadata: Any = {"name": "never", "namespace": cluster.namespace, "annotations": short}
        Pod("never", metadata=metadata, spec={"containers": [{"name": "main", "image": "none"}]}, opts=opts)

    failed = cluster.stack.up(cluster.program(body))

    assert not failed.ok and "is not ready" in failed.errors[0]
    assert cluster.stack.resources()["never"].init_errors
    removed = cluster.stack.up(cluster.program(lambda _: None))
    assert removed.ok and removed.counts["delete"] == 1


def test_drift_shows_in_one_refresh_and_the_next_up_corrects_it(cluster: Cluster) -> None:
    program = cluster.program(lambda opts: cluster.config_map("map", opts, a="1"))
    assert cluster.stack.up(program).ok
    assert set(cluster.stack.refresh().counts) == {"same"}
    cluster.apply("settings", {"a": "2"})

    drifted = cluster.stack.refresh()

    assert drifted.counts["update"] == 1 and set(cluster.stack.refresh().counts) == {"same"}
    assert cluster.stack.up(program).ok and cluster.data() == {"settings": {"a": "1"}}


def test_programs_with_empty_values_take_the_same_steps_as_with_pulumis_provider(cluster: Cluster) -> None:
    """As `recordings/spellings.jsonl` was made."""

    def counts(verb: str, step: int) -> dict[str, int]:
        cluster.stack.configure({"test:step": str(step), "test:kubeconfig": cluster.kubeconfig})
        outcome: Outcome = getattr(cluster.stack, verb)(lambda: runpy.run_path(str(SPELLINGS)))
        assert outcome.ok, outcome.errors
        return {
            step: count for step, count in outcome.counts.items() if step in ("create", "update", "replace", "same")
        }

    assert counts("up", 0) == {"create": 17}
    assert counts("preview", 0) == counts("up", 0) == NEVER_SAME

    without_empties = {"update": 5, "replace": 1, "same": 11}
    assert counts("preview", 1) == counts("up", 1) == without_empties
    edited = {"update": 8, "replace": 3, "same": 6}
    assert counts("preview", 2) == counts("up", 2) == edited
    back = {"update": 10, "replace": 3, "same": 4}
    assert counts("preview", 3) == counts("up", 3) == back

    assert cluster.stack.refresh().ok
    assert counts("preview", 3) == NEVER_SAME
    assert cluster.stack.destroy().ok

"""Our Kubernetes provider beside Pulumi's: the CLI takes the same steps with the objects of stack `local`."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pulumi
import pytest
from pulumi import ResourceOptions

from local.control_plane.control_plane import ControlPlane
from local.plugins.values import UNKNOWN, Secret
from local.pulumi.cli import write_kubernetes
from tests.local.plugins.kubernetes.cluster_with_cli import Cluster, cluster_with_cli
from tests.local.plugins.stack_with_cli import Outcome, tools
from tests.policy.production import resources

pytestmark = [pytest.mark.cli, pytest.mark.control_plane, pytest.mark.timeout(600)]

OTHERS = frozenset(
    {
        "__fieldManager",
        *("uid", "creationTimestamp", "managedFields", "resourceVersion", "generation", "status"),
        *("clusterIP", "clusterIPs", "nodePort"),
        *("deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"),
    }
)
"""Fields that API server, controllers or, the first one, each provider choose themselves."""


@dataclass(frozen=True)
class Course:
    """The runs of a program, and what the state holds of its objects after each."""

    outcomes: list[Outcome]
    kept: list[dict[str, Any]]


@pytest.fixture(scope="module")
def courses(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Course, Course]]:
    """With our provider, and with Pulumi's."""
    with cluster_with_cli(control_plane, tmp_path_factory.mktemp("ours")) as cluster:
        ours = course(cluster)
    with cluster_with_cli(control_plane, tmp_path_factory.mktemp("theirs")) as cluster:
        del cluster.stack.factories["kubernetes"]
        write_kubernetes(tools(), cluster.stack.directory / "home")
        [plugin] = cluster.stack.directory.glob("home/plugins/*/pulumi-resource-kubernetes")
        assert plugin.is_symlink(), "Pulumi's is missing: make binaries"
        yield ours, course(cluster)


def course(cluster: Cluster) -> Course:
    """Make the objects, read them, change some, and delete all."""
    stack, made, changed = cluster.stack, cluster.program(declare), cluster.program(lambda opts: declare(opts, True))
    runs: list[Callable[[], Outcome]] = [
        lambda: stack.up(made),
        stack.refresh,
        lambda: stack.up(changed),
        stack.destroy,
    ]
    found = Course([], [])
    for run in runs:
        outcome = run()
        assert outcome.ok, outcome.output
        found.outcomes.append(outcome)
        objects = [each for each in stack.all() if each.type.startswith("kubernetes:")]
        found.kept.append({each.urn: (each.id, settled(each.outputs)) for each in objects})
    return found


def declare(opts: ResourceOptions, changed: bool = False) -> None:
    """The objects of stack `local`; `changed`: one has another image, one is replaced, one is gone."""
    for each in (seen.alone for seen in resources("local") if seen.alone.type.startswith("kubernetes:")):
        props = known(each.properties)
        # Nothing runs pods here, or makes load balancers.
        props["metadata"].setdefault("annotations", {})["pulumi.com/skipAwait"] = "true"
        if changed and each.type.endswith(":Deployment"):
            props["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.local/web:2"
        if changed and each.type.endswith(":StorageClass"):
            props["parameters"] = {"type": "fast"}
        if not (changed and each.type.endswith(":Service") and each.name == "echo"):
            pulumi.CustomResource(each.type, each.name, props, opts)


def known(value: Any) -> Any:
    """A property as a program gives it; what a preview does not know is some text."""
    if isinstance(value, dict):
        return {key: known(each) for key, each in value.items()}
    if isinstance(value, list):
        return [known(each) for each in value]
    if isinstance(value, Secret):
        return pulumi.Output.secret(known(value.value))
    return "--v=1" if value is UNKNOWN else value


def settled(value: Any) -> Any:
    """Outputs without what differs from run to run."""
    if isinstance(value, dict):
        return {key: settled(each) for key, each in value.items() if key not in OTHERS}
    return [settled(each) for each in value] if isinstance(value, list) else value


def steps(events: list[dict[str, Any]]) -> list[str]:
    """Each step with its resource and what differs there.

    Against what it differs (`inputDiff`) is left out: ours compares inputs, Pulumi's mostly the live object.
    """
    found = []
    for step in (event["resOutputsEvent"]["metadata"] for event in events if "resOutputsEvent" in event):
        differing = {path: diff["diffKind"] for path, diff in (step.get("detailedDiff") or {}).items()}
        found.append(json.dumps([step["op"], step["urn"], step.get("keys") or [], differing], sort_keys=True))
    return sorted(found)


def test_the_cli_takes_the_same_steps_with_our_provider_as_with_pulumis(courses: tuple[Course, Course]) -> None:
    ours, theirs = courses

    assert [{op for op in each.counts if op != "same"} for each in theirs.outcomes] == [
        {"create"},
        set(),
        {"update", "replace", "delete"},
        {"delete"},
    ]
    for mine, other in zip(ours.outcomes, theirs.outcomes, strict=True):
        assert steps(mine.events) == steps(other.events)


def test_the_state_holds_the_same_of_each_object_as_with_pulumis_provider(courses: tuple[Course, Course]) -> None:
    ours, theirs = courses

    assert len(theirs.kept[0]) == 13
    for mine, other in zip(ours.kept, theirs.kept, strict=True):
        assert mine == other


@pytest.mark.parametrize(
    ("key", "value"), [("urn", "another"), ("op", "another"), ("detailedDiff", {"data": {"diffKind": "update"}})]
)
def test_one_step_that_differs_is_found(courses: tuple[Course, Course], key: str, value: Any) -> None:
    ours, theirs = (course.outcomes[2].events for course in courses)
    altered = copy.deepcopy(ours)
    step = next(event["resOutputsEvent"]["metadata"] for event in altered if "resOutputsEvent" in event)
    step[key] = value

    assert steps(altered) != steps(theirs)

"""Machines are found in batches though one node is at fault, and a node is patched without undoing others' work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from cloud_controller.cloud import Conflict, Instance, InstanceRef, InvalidConfiguration, Unavailable
from cloud_controller.controllers.nodes import describe, is_ready, patch_node, patch_status, pod_cidrs
from cloud_controller.kube import NODES, ApiError, ConflictError, InvalidError, Object, PatchType
from tests.fake_kubernetes import FakeKubernetes

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
CHANGED = ConflictError(409, "Conflict", "changed")


def node(name: str, *, uid: str = "", **spec: Any) -> Object:
    metadata = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": spec}


class Picky:
    """A cloud that refuses whole calls because of single references."""

    def __init__(self, wrong: set[str], error: Exception) -> None:
        self.wrong, self.error = wrong, error
        self.calls = 0

    def list(self) -> Sequence[Instance]:
        return []

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        self.calls += 1
        if any(ref.node_name in self.wrong for ref in refs):
            raise self.error
        return dict.fromkeys(refs)


def described(cloud: Any, count: int) -> tuple[dict[str, Instance | None], dict[str, Any]]:
    found, wrong = describe(cloud, [node(f"n{number:02}") for number in range(count)])
    return found, dict(wrong)


@pytest.mark.parametrize("error", [InvalidConfiguration("node", "another cloud's"), Conflict("two of a name")])
def test_nodes_at_fault_are_singled_out_and_the_others_get_their_answer(error: Exception) -> None:
    cloud = Picky({"n07", "n42"}, error)

    found, wrong = described(cloud, 64)

    assert wrong == {"n07": error, "n42": error}
    assert len(found) == 62
    assert cloud.calls < 30


def test_a_cloud_that_does_not_answer_is_not_asked_node_by_node() -> None:
    cloud = Picky({"n07"}, Unavailable("down"))

    with pytest.raises(Unavailable):
        described(cloud, 64)

    assert cloud.calls == 1


def cluster(*nodes: Object) -> FakeKubernetes:
    api = FakeKubernetes()
    api.put(NODES, *nodes)
    return api


def add_taint(api: FakeKubernetes) -> None:
    """Somebody else writes node a."""
    api.change(NODES, "a", lambda node: node["spec"].setdefault("taints", []).append({"key": "another"}))


def count_taints(current: Object) -> Object:
    return {"metadata": {"labels": {"taints": str(len(current["spec"].get("taints", [])))}}}


def test_a_patch_is_made_anew_from_what_another_wrote_meanwhile() -> None:
    api = cluster(node("a"))
    api.meddle(lambda: add_taint(api), "patch", times=1)

    patch_node(api, api.get(NODES, "a"), count_taints)

    assert api.writes == ["patch nodes/a"]
    assert api.get(NODES, "a")["metadata"]["labels"] == {"taints": "1"}


def test_a_node_that_is_written_all_the_time_is_given_up() -> None:
    api = cluster(node("a"))
    api.meddle(lambda: add_taint(api), "patch")

    with pytest.raises(ConflictError):
        patch_node(api, api.get(NODES, "a"), count_taints)


def test_nothing_is_written_where_nothing_is_left_to_change() -> None:
    api = cluster(node("a"))

    patch_node(api, api.get(NODES, "a"), lambda _: None)

    assert api.writes == []


def test_a_node_that_is_gone_is_left_alone() -> None:
    api = cluster()

    patch_node(api, node("a"), count_taints)

    assert api.writes == []


def test_a_node_that_was_made_anew_under_the_name_is_left_alone() -> None:
    api = cluster(node("a"))
    seen = api.get(NODES, "a")
    api.remove(NODES, "a")
    api.put(NODES, node("a", uid="another"))

    patch_node(api, seen, count_taints)

    assert api.writes == []


@pytest.mark.parametrize(
    "spec, cidrs",
    [({}, ()), ({"podCIDR": "10.1.0.0/24"}, ("10.1.0.0/24",)), ({"podCIDR": "a", "podCIDRs": ["a", "b"]}, ("a", "b"))],
)
def test_pod_ranges_are_read_in_both_forms(spec: Object, cidrs: tuple[str, ...]) -> None:
    assert pod_cidrs(node("a", **spec)) == cidrs


def test_a_node_that_says_nothing_of_itself_is_not_ready() -> None:
    assert not is_ready(node("a"))


@pytest.mark.parametrize("present", [(), (node("a", uid="another"),)], ids=["gone", "made anew"])
def test_the_status_of_a_node_made_anew_under_the_same_name_is_left_alone(present: tuple[Object, ...]) -> None:
    api = cluster(*present)

    assert patch_status(api, node("a"), READY, PatchType.MERGE) is None
    assert api.writes == []


def test_a_status_is_written_though_somebody_else_wrote_first() -> None:
    api = cluster(node("a"))
    api.fail(CHANGED, "patch", times=2)

    written = patch_status(api, node("a"), READY, PatchType.MERGE)

    assert written == api.get(NODES, "a")
    assert written["status"] == READY


@pytest.mark.parametrize("refusal", [CHANGED, InvalidError(422, "Invalid", "field is immutable")])
def test_a_status_that_is_refused_all_the_time_or_for_itself_is_an_error(refusal: ApiError) -> None:
    api = cluster(node("a"))
    api.fail(refusal, "patch")

    with pytest.raises(type(refusal)):
        patch_status(api, node("a"), READY, PatchType.MERGE)


def test_a_node_that_goes_while_its_status_is_in_conflict_is_left_alone() -> None:
    api = cluster()
    api.fail(CHANGED, "patch", times=1)

    assert patch_status(api, node("a"), READY, PatchType.MERGE) is None

"""Machines are found in batches though one node is at fault, and a node is patched without undoing others' work."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from cloud_controller.cloud import Conflict, Instance, InstanceRef, InvalidConfiguration, Unavailable
from cloud_controller.controllers.nodes import describe, is_ready, patch_node, patch_status, pod_cidrs
from cloud_controller.kube import ConflictError, InvalidError, NotFoundError, Object, PatchType


def node(name: str, version: str = "1", **spec: Any) -> Object:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": version}, "spec": spec}


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


class Nodes:
    """One node as the API server keeps it; `meddlers` write before the next patches come in."""

    def __init__(self, stored: Object | None, *meddlers: Callable[[Object], None]) -> None:
        self.stored = stored
        self.meddlers = list(meddlers)
        self.patches: list[Object] = []

    def patch(self, _: object, name: str, patch: Object, **__: object) -> None:
        if self.stored is not None and self.meddlers:
            self.meddlers.pop(0)(self.stored)
        if self.stored is None:
            raise NotFoundError(404, "NotFound", name)
        if patch["metadata"]["resourceVersion"] != self.stored["metadata"]["resourceVersion"]:
            raise ConflictError(409, "Conflict", "changed")
        self.patches.append(patch)

    def get(self, _: object, name: str) -> Object:
        if self.stored is None:
            raise NotFoundError(404, "NotFound", name)
        return copy.deepcopy(self.stored)


def taint(version: str) -> Callable[[Object], None]:
    def meddle(stored: Object) -> None:
        stored["metadata"]["resourceVersion"] = version
        stored["spec"]["taints"] = [{"key": f"of-{version}"}]

    return meddle


def count_taints(current: Object) -> Object:
    return {"metadata": {"labels": {"taints": str(len(current["spec"].get("taints", [])))}}}


def patched(nodes: Any, seen: Object, change: Callable[[Object], Object | None] = count_taints) -> list[Object]:
    patch_node(nodes, seen, change)
    found: list[Object] = nodes.patches
    return found


def test_a_patch_is_made_anew_from_what_another_wrote_meanwhile() -> None:
    nodes = Nodes(node("a"), taint("2"))

    (patch,) = patched(nodes, node("a"))

    assert patch == {"metadata": {"labels": {"taints": "1"}, "resourceVersion": "2"}}


def test_a_node_that_is_written_all_the_time_is_given_up() -> None:
    nodes = Nodes(node("a"), *(taint(str(version)) for version in range(2, 20)))

    with pytest.raises(ConflictError):
        patched(nodes, node("a"))


def test_nothing_is_written_where_nothing_is_left_to_change() -> None:
    assert patched(Nodes(node("a")), node("a"), lambda _: None) == []


def test_a_node_that_is_gone_is_left_alone() -> None:
    assert patched(Nodes(None), node("a")) == []


def test_a_node_that_was_made_anew_under_the_name_is_left_alone() -> None:
    anew = node("a", "7")
    anew["metadata"]["uid"] = "another"

    assert patched(Nodes(anew), node("a")) == []


@pytest.mark.parametrize(
    "spec, cidrs",
    [({}, ()), ({"podCIDR": "10.1.0.0/24"}, ("10.1.0.0/24",)), ({"podCIDR": "a", "podCIDRs": ["a", "b"]}, ("a", "b"))],
)
def test_pod_ranges_are_read_in_both_forms(spec: Object, cidrs: tuple[str, ...]) -> None:
    assert pod_cidrs(node("a", **spec)) == cidrs


def test_a_node_that_says_nothing_of_itself_is_not_ready() -> None:
    assert not is_ready(node("a"))


class Refusing:
    """An API server that has `present` and finds every status patch at fault."""

    def __init__(self, present: Object | None) -> None:
        self.present = present

    def patch(self, *_: object, **__: object) -> Object:
        raise InvalidError(422, "Invalid", "field is immutable")

    def get(self, *_: object) -> Object:
        if self.present is None:
            raise NotFoundError(404, "NotFound", "gone")
        return self.present


@pytest.mark.parametrize("present", [None, node("a") | {"metadata": {"name": "a", "uid": "another"}}])
def test_the_status_of_a_node_made_anew_under_the_same_name_is_left_alone(present: Object | None) -> None:
    kube: Any = Refusing(present)

    assert patch_status(kube, node("a"), {}, PatchType.MERGE) is None


class Busy:
    """An API server that refuses the first patches of `present` because somebody wrote."""

    def __init__(self, present: Object | None, conflicts: int) -> None:
        self.present, self.conflicts = present, conflicts

    def patch(self, *_: object, **__: object) -> Object | None:
        if self.conflicts:
            self.conflicts -= 1
            raise ConflictError(409, "Conflict", "changed")
        return self.present

    def get(self, *_: object) -> Object:
        if self.present is None:
            raise NotFoundError(404, "NotFound", "gone")
        return self.present


def test_a_status_is_written_though_somebody_else_wrote_first() -> None:
    kube: Any = Busy(node("a"), conflicts=2)

    assert patch_status(kube, node("a"), {}, PatchType.MERGE) == node("a")


def test_a_status_that_is_in_conflict_all_the_time_is_given_up() -> None:
    kube: Any = Busy(node("a"), conflicts=100)

    with pytest.raises(ConflictError):
        patch_status(kube, node("a"), {}, PatchType.MERGE)


def test_a_node_that_goes_while_its_status_is_in_conflict_is_left_alone() -> None:
    kube: Any = Busy(None, conflicts=1)

    assert patch_status(kube, node("a"), {}, PatchType.MERGE) is None


def test_a_status_that_is_refused_for_itself_is_an_error() -> None:
    kube: Any = Refusing(node("a"))

    with pytest.raises(InvalidError):
        patch_status(kube, node("a"), {}, PatchType.MERGE)

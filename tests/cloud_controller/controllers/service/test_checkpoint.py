"""What a restart finds in the checkpoint: the truth, or nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cloud_controller.controllers.service.checkpoint import LIMIT, Checkpoint, forget
from cloud_controller.kube import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    Kube,
    NotFoundError,
    Object,
    UnreachableError,
)
from cloud_controller.rbac import CHECKPOINT_NAME


class Cluster:
    """An API server with room for one ConfigMap.

    `refuse` is what every write fails with, `silent` whether no answer arrives, though what was asked is done.
    """

    def __init__(self) -> None:
        self.stored: Object | None = None
        self.writes = 0
        self.refuse: Exception | None = None
        self.silent = False

    def get(self, _: Any, name: str, namespace: str) -> Object:
        assert (namespace, name) == ("kube-system", CHECKPOINT_NAME)
        self._answer()
        if self.stored is None:
            raise NotFoundError(404, "NotFound", "no such ConfigMap")
        return copy.deepcopy(self.stored)

    def create(self, _: Any, obj: Object) -> Object:
        if self.stored is not None:
            raise AlreadyExistsError(409, "AlreadyExists", "there is one")
        return self._store(obj)

    def replace(self, _: Any, obj: Object) -> Object:
        if self.stored is None:
            raise NotFoundError(404, "NotFound", "no such ConfigMap")
        version = self.stored["metadata"]["resourceVersion"]
        if obj["metadata"].get("resourceVersion", version) != version:
            raise ConflictError(409, "Conflict", "another has written")
        return self._store(obj)

    def _store(self, obj: Object) -> Object:
        if self.refuse is not None:
            raise self.refuse
        self.writes += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.writes)}
        self.stored = {**copy.deepcopy(obj), "metadata": metadata}
        self._answer()
        return copy.deepcopy(self.stored)

    def _answer(self) -> None:
        if self.silent:
            raise UnreachableError("no answer")

    @property
    def full(self) -> bool:
        return bool(self.stored and self.stored.get("binaryData"))


class Memory:
    """A cloud that remembers."""

    def __init__(self, memory: bytes = b"") -> None:
        self.memory = memory

    def dump(self, limit: int) -> bytes:
        assert limit == LIMIT
        return self.memory

    def restore(self, memory: bytes) -> None:
        if memory == b"damaged":
            raise ValueError("no memory of ours")
        self.memory = memory


def process(cluster: Cluster | Kube, memory: Memory, cluster_id: str = "c-1") -> Checkpoint:
    """A process that was just started."""
    made = Checkpoint(cluster, cluster_id, memory)  # type: ignore[arg-type]
    made.restore()
    return made


def kept(memory: bytes = b"listeners") -> Cluster:
    cluster = Cluster()
    assert process(cluster, Memory(memory)).save()
    return cluster


def test_what_one_process_kept_the_next_remembers() -> None:
    memory = Memory()

    process(kept(b"listeners"), memory)

    assert memory.memory == b"listeners"


def test_before_the_cloud_is_changed_the_checkpoint_is_empty() -> None:
    cluster = kept()

    with process(cluster, Memory()).writing():
        assert not cluster.full


def test_a_process_that_dies_after_a_change_leaves_the_next_nothing_to_remember() -> None:
    cluster, memory = kept(), Memory()
    with process(cluster, Memory()).writing():
        pass

    process(cluster, memory)

    assert memory.memory == b""


def test_at_rest_it_is_kept_again() -> None:
    cluster, memory = kept(b"old"), Memory()
    running = process(cluster, memory)
    with running.writing():
        memory.memory = b"new"

    assert running.save()

    again = Memory()
    process(cluster, again)
    assert again.memory == b"new"


def test_while_the_cloud_is_being_changed_nothing_is_kept() -> None:
    cluster = Cluster()
    running = process(cluster, Memory(b"half"))

    with running.writing():
        assert not running.save()

    assert not cluster.full


def test_many_changes_empty_it_once_and_the_same_memory_is_written_once() -> None:
    cluster = kept()
    running = process(cluster, Memory())
    before = cluster.writes

    for _ in range(3):
        with running.writing():
            pass
    running.save()
    running.save()

    assert cluster.writes == before + 2


def test_where_it_cannot_be_emptied_the_cloud_is_not_changed() -> None:
    cluster = kept()
    running = process(cluster, Memory())
    cluster.refuse = ForbiddenError(403, "Forbidden", "not yours")

    with pytest.raises(ForbiddenError), running.writing():
        pytest.fail("the cloud is changed, and the checkpoint says otherwise")


def test_what_is_damaged_is_as_if_there_were_none() -> None:
    found = Memory()

    running = process(kept(b"damaged"), found)

    assert found.memory == b""
    assert running.save(), "and a whole one takes its place"


def test_another_clusters_checkpoint_is_as_if_there_were_none() -> None:
    memory = Memory()

    process(kept(), memory, cluster_id="c-2")

    assert memory.memory == b""


def test_without_the_right_to_keep_one_work_goes_on() -> None:
    cluster = Cluster()
    cluster.refuse = ForbiddenError(403, "Forbidden", "not yours")
    running = process(cluster, Memory(b"listeners"))

    assert running.save()
    with running.writing():
        pass


@pytest.mark.parametrize(
    "refusal",
    [ForbiddenError(403, "Forbidden", "not yours"), UnreachableError("no answer")],
    ids=["no right", "silent"],
)
def test_one_that_is_empty_need_not_be_written_before_the_cloud_is_changed(refusal: Exception) -> None:
    cluster = Cluster()
    running = process(cluster, Memory(b"listeners"))
    cluster.refuse = refusal

    with running.writing():
        assert not cluster.full


def test_one_that_another_has_written_is_emptied_before_a_change_and_never_written_over() -> None:
    cluster = kept()
    ours, others = process(cluster, Memory(b"ours")), process(cluster, Memory(b"theirs"))
    with others.writing():
        pass
    assert others.save()

    with ours.writing():
        assert not cluster.full
    ours.save()

    assert not cluster.full


def test_a_process_that_led_before_writes_nothing_any_more_once_the_cloud_was_changed() -> None:
    cluster = kept()
    before = process(cluster, Memory(b"how it was"))
    with before.writing():
        pass
    after = process(cluster, Memory())
    with after.writing():
        pass

    before.save()

    assert not cluster.full


def test_one_whose_writing_was_not_answered_is_emptied_before_the_next_change() -> None:
    cluster = Cluster()
    running = process(cluster, Memory(b"listeners"))
    cluster.silent = True
    running.save()
    cluster.silent = False
    assert cluster.full

    with running.writing():
        assert not cluster.full


def test_one_that_could_not_be_read_is_emptied_before_the_next_change() -> None:
    cluster = kept()
    cluster.silent = True
    running = process(cluster, Memory())
    cluster.silent = False

    with running.writing():
        assert not cluster.full


def test_whoever_changes_the_cloud_past_the_daemon_empties_it() -> None:
    cluster = kept()

    forget(cluster)  # type: ignore[arg-type]
    forget(Cluster())  # type: ignore[arg-type]

    assert not cluster.full

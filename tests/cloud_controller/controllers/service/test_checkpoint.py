"""What a restart finds in the checkpoint: the truth, or nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cloud_controller.controllers.service.checkpoint import LIMIT, Checkpoint, without_checkpoint
from cloud_controller.kube import CONFIG_MAPS, ForbiddenError, KubeApi, UnreachableError
from cloud_controller.rbac import CHECKPOINT_NAME, LEASE_NAMESPACE
from tests.fake_kubernetes import WRITES, FakeKubernetes, Request


class Cluster(FakeKubernetes):
    """An API server for the checkpoint; while it is `silent`, what is asked is done, but no answer arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.silent = False
        self.after.append(self._answer)

    def _answer(self, _: Request) -> None:
        if self.silent:
            raise UnreachableError("no answer")

    @property
    def full(self) -> bool:
        stored = self.objects(CONFIG_MAPS).get(f"{LEASE_NAMESPACE}/{CHECKPOINT_NAME}", {})
        return bool(stored.get("binaryData"))


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


def process(cluster: KubeApi, memory: Memory, cluster_id: str = "c-1") -> Checkpoint:
    """A process that was just started."""
    made = Checkpoint(cluster, cluster_id, memory)
    made.restore()
    return made


def forget(kube: KubeApi) -> None:
    """Change the cloud without the checkpoint, as the command line does."""
    cloud: Any = SimpleNamespace(load_balancers=Memory())
    with without_checkpoint(kube, cloud):
        pass


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
    before = len(cluster.writes)

    for _ in range(3):
        with running.writing():
            pass
    running.save()
    running.save()

    assert len(cluster.writes) == before + 2


def test_where_it_cannot_be_emptied_the_cloud_is_not_changed() -> None:
    cluster = kept()
    running = process(cluster, Memory())
    cluster.fail(ForbiddenError(403, "Forbidden", "not yours"), *WRITES)

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
    cluster.fail(ForbiddenError(403, "Forbidden", "not yours"), *WRITES)
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
    cluster.fail(refusal, *WRITES)

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


def test_a_process_writes_nothing_once_the_cloud_was_changed_past_it_again() -> None:
    cluster = kept()
    forget(cluster)
    running = process(cluster, Memory(b"how it was"))
    forget(cluster)

    running.save()

    assert not cluster.full


def test_whoever_changes_the_cloud_past_the_daemon_empties_it() -> None:
    cluster = kept()

    forget(cluster)
    forget(Cluster())

    assert not cluster.full

"""The checkpoint on a real API server, whose versions say who may write it."""

from __future__ import annotations

import pytest

from cloud_controller.kube import CONFIG_MAPS, Kube
from cloud_controller.rbac import CHECKPOINT_NAME
from tests.cloud_controller.controllers.service.test_checkpoint import Memory, forget, process

pytestmark = pytest.mark.control_plane


def test_it_outlives_its_process_until_somebody_changes_the_cloud_and_a_process_that_led_before_writes_nothing(
    kube: Kube,
) -> None:
    def full() -> bool:
        return bool(kube.get(CONFIG_MAPS, CHECKPOINT_NAME, "kube-system").get("binaryData"))

    forget(kube)
    before, after = Memory(b"listeners"), Memory()
    first = process(kube, before)
    assert first.save()

    second = process(kube, after)
    assert after.memory == b"listeners"
    with second.writing():
        assert not full()
    before.memory = b"of before"
    first.save()
    assert not full()

    after.memory = b"new"
    assert second.save()
    assert full()
    forget(kube)
    assert not full()


def test_a_process_that_led_before_writes_nothing_though_the_checkpoint_was_empty_already(kube: Kube) -> None:
    forget(kube)
    before, after = process(kube, Memory(b"how it was")), process(kube, Memory())
    with before.writing():
        pass
    with after.writing():
        pass

    before.save()

    assert not kube.get(CONFIG_MAPS, CHECKPOINT_NAME, "kube-system").get("binaryData")

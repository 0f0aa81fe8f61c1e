"""Events tell people what happened, once each with a count, and never get in a controller's way."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from cloud_controller.cli.values import object_name
from cloud_controller.events import EventRecorder
from cloud_controller.fence import WriteRefused
from cloud_controller.kube import EVENTS, ForbiddenError, Object
from tests.fake_kubernetes import FakeKubernetes

NODE: Object = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a", "uid": "u"}}
SERVICE: Object = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "ns", "uid": "v"}}


def recorder(api: FakeKubernetes) -> EventRecorder:
    return EventRecorder(api, "test-controller", now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


def written(api: FakeKubernetes) -> list[Object]:
    return [*api.objects(EVENTS).values()]


def recorded(*told: tuple[str, str], about: Object = NODE) -> list[Object]:
    """The stored events after these reasons and messages about the object."""
    api = FakeKubernetes()
    events = recorder(api)
    for reason, message in told:
        events.normal(about, reason, message)
    assert events.close(60)
    return written(api)


def test_an_event_names_object_reason_and_source() -> None:
    api = FakeKubernetes()
    events = recorder(api)

    events.warning(SERVICE, "Failed", "It failed")
    assert events.close(60)

    (event,) = written(api)
    assert event["involvedObject"] == {
        "apiVersion": "v1", "kind": "Service", "name": "s", "namespace": "ns", "uid": "v",
    }  # fmt: skip
    assert (event["type"], event["reason"], event["message"], event["count"]) == ("Warning", "Failed", "It failed", 1)
    assert event["metadata"]["namespace"] == "ns"
    assert event["source"] == {"component": "test-controller"}
    assert event["firstTimestamp"] == "2026-01-02T03:04:05Z"


def test_an_event_of_a_cluster_wide_object_is_kept_in_the_default_namespace() -> None:
    (event,) = recorded(("Synced", "done"))

    assert event["metadata"]["namespace"] == "default"


def test_the_same_event_again_raises_its_count() -> None:
    found = recorded(*[("Synced", "done")] * 3, ("Synced", "something else"))

    assert sorted(event["count"] for event in found) == [1, 3]


def test_an_event_that_has_expired_is_written_anew() -> None:
    api = FakeKubernetes()
    api.meddle(api.objects(EVENTS).clear, "patch")
    events = recorder(api)
    events.normal(NODE, "Synced", "done")
    events.normal(NODE, "Synced", "done")
    events.close(60)

    assert [event["count"] for event in written(api)] == [1]


@pytest.mark.parametrize("refusal", [ForbiddenError(403, "Forbidden", "may not"), WriteRefused("the lease is lost")])
def test_an_event_that_may_not_be_written_is_logged_and_the_next_one_tried(
    caplog: pytest.LogCaptureFixture, refusal: Exception
) -> None:
    caplog.set_level(logging.WARNING)  # a test of the command line may have raised it for the whole process
    api = FakeKubernetes()
    api.fail(refusal)
    events = recorder(api)

    events.normal(NODE, "One", "1")
    events.normal(NODE, "Two", "2")
    assert events.close(60)

    assert "reason=One" in caplog.text
    assert "reason=Two" in caplog.text


def test_the_event_of_an_object_with_the_longest_name_has_a_name_that_an_object_may_have() -> None:
    (event,) = recorded(("Long", "x"), about={**NODE, "metadata": {"name": "a" * 235 + "-" + "b" * 17}})

    assert object_name(event["metadata"]["name"])


def test_a_long_message_is_cut_to_what_the_api_server_takes() -> None:
    (event,) = recorded(("Long", "x" * 5000))

    assert len(event["message"]) == 1024

"""Which gates are a cloud's, which Services ask for them, and which pods wait for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancers.readiness_gates import (
    ANNOTATION,
    Mode,
    ReadinessGates,
    closed_gates,
    counts_as_ready,
    is_held,
    is_otherwise_ready,
    selects,
)

ALIAS = "example.com/readiness-gate"
GATES = ReadinessGates("example.com/ready", "service.example.com/", frozenset({"example.com/nlb"}), (ALIAS,))


def pod(*gates: str, true: Sequence[str] = (), phase: str = "Running", deleted: bool = False) -> dict[str, Any]:
    """A pod with these gates; the conditions of `true` are True, all others False."""
    types = dict.fromkeys([*gates, "ContainersReady", "Ready", *true])
    return {
        "metadata": {"namespace": "default", "labels": {"app": "web"}}
        | ({"deletionTimestamp": "x"} if deleted else {}),
        "spec": {"readinessGates": [{"conditionType": each} for each in gates]},
        "status": {
            "phase": phase,
            "conditions": [{"type": each, "status": "True" if each in true else "False"} for each in types],
        },
    }


def service(selector: dict[str, str] | None, namespace: str = "default", **annotations: str) -> dict[str, Any]:
    named = {"ours": ANNOTATION, "alias": ALIAS}
    given = {named[each]: value for each, value in annotations.items()}
    return {"metadata": {"namespace": namespace, "name": "web", "annotations": given}, "spec": {"selector": selector}}


def test_a_pods_gates_are_the_clouds_own_type_and_those_that_name_a_service() -> None:
    types = ["others.com/x", "example.com/ready", "service.example.com/web", "example.com/ready2"]

    assert GATES.of_pod(pod(*types)) == ("example.com/ready", "service.example.com/web")
    assert ReadinessGates("example.com/ready").of_pod(pod(*types)) == ("example.com/ready",)


@pytest.mark.parametrize(
    ("annotations", "asked"),
    [
        ({}, None),
        ({"ours": "true"}, True),
        ({"ours": "false"}, False),
        ({"alias": "true"}, True),
        ({"ours": "false", "alias": "true"}, False),
    ],
)
def test_the_clouds_annotation_means_the_same_as_the_one_of_every_cloud_which_wins(
    annotations: dict[str, str], asked: bool | None
) -> None:
    assert GATES.asked(service({}, **annotations)) is asked


def test_an_error_names_the_annotation_and_the_words() -> None:
    with pytest.raises(InvalidConfiguration, match=r"'yes' is not a valid value .*true, false") as caught:
        GATES.asked(service({}, ours="yes"))
    assert ANNOTATION in str(caught.value)


def test_the_general_gate_waits_for_every_service_and_one_that_names_a_service_for_that() -> None:
    assert GATES.waits_for("example.com/ready", service({}))
    assert GATES.waits_for("service.example.com/web", service({}))
    assert not GATES.waits_for("service.example.com/other", service({}))
    assert not GATES.waits_for("example.com/ready", service({}, ours="false"))
    assert GATES.waits_for("example.com/ready", service({}, ours="yes"))


@pytest.mark.parametrize(
    ("the_pod", "held"),
    [
        (pod("example.com/ready"), True),
        (pod("example.com/ready", true=["example.com/ready"]), True),
        (pod("example.com/ready", true=["Ready"]), False),
        (pod("example.com/ready", phase="Succeeded"), False),
        (pod("others.com/x"), False),
        (pod(), False),
    ],
)
def test_a_living_pod_with_a_gate_of_ours_is_held_until_it_is_ready(the_pod: dict[str, Any], held: bool) -> None:
    assert is_held(the_pod, GATES) is held


@pytest.mark.parametrize(
    ("the_pod", "ready"),
    [
        (pod("example.com/ready", true=["ContainersReady"]), True),
        (pod("example.com/ready"), False),
        ({**pod("example.com/ready"), "status": {"phase": "Pending"}}, False),
        (pod("example.com/ready", true=["ContainersReady"], deleted=True), False),
        (pod("example.com/ready", "others.com/x", true=["ContainersReady"]), False),
        (pod("example.com/ready", "others.com/x", true=["ContainersReady", "others.com/x"]), True),
    ],
)
def test_only_a_pod_whose_containers_and_other_gates_are_ready_waits_for_ours_alone(
    the_pod: dict[str, Any], ready: bool
) -> None:
    assert is_otherwise_ready(the_pod, GATES) is ready


@pytest.mark.parametrize(
    ("seconds", "counts"),
    [
        ({"a": 0, "b": 0}, True),
        ({"a": 29, "b": 500}, True),
        ({"a": 30, "b": 30}, False),
        ({"a": None}, False),
        ({}, True),
    ],
)
def test_a_pod_that_stays_unready_behind_open_gates_counts_as_ready_for_30_seconds(
    seconds: dict[str, int | None], counts: bool
) -> None:
    """Longer, and it is unready for another reason: its node is dead."""
    now, types = datetime(2026, 1, 1, tzinfo=UTC), [f"service.example.com/{each}" for each in seconds or "a"]
    behind = pod(*types, true=["ContainersReady", *(types if seconds else [])])
    for each in behind["status"]["conditions"]:
        ago = seconds.get(each["type"].removeprefix("service.example.com/"))
        if ago is not None:
            each["lastTransitionTime"] = (now - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")

    assert counts_as_ready(behind, GATES, now) is counts


def test_a_pod_with_a_closed_gate_counts_as_ready_however_long_ago_another_was_opened() -> None:
    now, types = datetime(2026, 1, 1, tzinfo=UTC), ["service.example.com/a", "service.example.com/b"]
    half = pod(*types, true=["ContainersReady", types[0]])

    assert counts_as_ready(half, GATES, now)
    half["status"]["conditions"] = [each for each in half["status"]["conditions"] if each["type"] != "ContainersReady"]
    assert not counts_as_ready(half, GATES, now)


def test_closed_are_the_gates_whose_condition_is_missing_or_not_true() -> None:
    types = ("example.com/ready", "service.example.com/a", "service.example.com/b")
    without_b = pod(*types, true=["example.com/ready"])
    without_b["status"]["conditions"] = [c for c in without_b["status"]["conditions"] if not c["type"].endswith("/b")]

    assert closed_gates(without_b, GATES) == ("service.example.com/a", "service.example.com/b")


@pytest.mark.parametrize(
    ("the_service", "selected"),
    [
        (service({"app": "web"}), True),
        (service({"app": "web", "tier": "front"}), False),
        (service({"app": "other"}), False),
        (service({}), False),
        (service(None), False),
        (service({"app": "web"}, namespace="other"), False),
    ],
)
def test_a_service_selects_pods_of_its_namespace_by_all_labels_of_its_selector(
    the_service: dict[str, Any], selected: bool
) -> None:
    assert selects(the_service, pod()) is selected


@pytest.mark.parametrize(
    ("given", "controllers", "by_default", "on_request"),
    [
        (None, ["service"], Mode.INJECT, Mode.OFF),
        ("off", ["service"], Mode.OFF, Mode.OFF),
        ("by-hand", ["service", "node"], Mode.BY_HAND, Mode.BY_HAND),
        ("inject", ["node"], Mode.OFF, Mode.OFF),
    ],
)
def test_the_mode_is_the_clouds_default_unless_it_is_chosen_and_off_without_the_service_controller(
    given: str | None, controllers: list[str], by_default: Mode, on_request: Mode
) -> None:
    assert GATES.mode(given, controllers) is by_default
    assert ReadinessGates().mode(given, controllers) is on_request


def test_the_daemon_gets_a_flag_where_the_mode_is_not_the_clouds_default() -> None:
    assert GATES.flag(Mode.INJECT) == ReadinessGates().flag(Mode.OFF) == []
    assert GATES.flag(Mode.OFF) == ["--readiness-gates=false"]
    assert ReadinessGates().flag(Mode.BY_HAND) == ["--readiness-gates=true"]

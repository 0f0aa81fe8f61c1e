"""The readiness gates of Alibaba Cloud, which pods may have from Alibaba's own controller too."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.clouds.alicloud import CLOUD
from cloud_controller.clouds.alicloud.annotation_entries import LEGACY_PREFIX, PREFIX
from cloud_controller.load_balancers.readiness_gates import ANNOTATION, Mode

GATES = CLOUD.readiness_gates


def test_both_condition_types_of_alibabas_are_known() -> None:
    types = ["cloud.alibabacloud.com/load-balancer-backend-ready", "service.readiness.alibabacloud.com/web"]
    pod = {"spec": {"readinessGates": [{"conditionType": each} for each in [*types, "others.example.com/x"]]}}
    services: list[dict[str, Any]] = [{"metadata": {"name": name}} for name in ("web", "other")]

    assert GATES.of_pod(pod) == tuple(types)
    assert [GATES.waits_for(types[0], each) for each in services] == [True, True]
    assert [GATES.waits_for(types[1], each) for each in services] == [True, False]


@pytest.mark.parametrize(
    ("annotations", "asked"),
    [
        ({f"{PREFIX}readiness-gate": "false"}, False),
        ({f"{LEGACY_PREFIX}readiness-gate": "false"}, False),
        ({f"{LEGACY_PREFIX}readiness-gate": "false", ANNOTATION: "true"}, True),
        ({}, None),
    ],
)
def test_an_annotation_under_either_prefix_switches_gates_off(annotations: dict[str, str], asked: bool | None) -> None:
    assert GATES.asked({"metadata": {"annotations": annotations}}) is asked


def test_every_class_and_no_class_have_gates_by_default() -> None:
    assert GATES.classes == {None, "alibabacloud.com/nlb", "cloud-controller/clb", "cloud-controller/nlb"}
    assert GATES.mode(None, ["service"]) is Mode.INJECT

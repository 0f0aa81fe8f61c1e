"""The readiness gates of Alibaba Cloud, which pods may have from Alibaba's own controller too."""

from __future__ import annotations

from cloud_controller.clouds.alicloud import CLOUD


def test_both_condition_types_of_alibabas_are_known() -> None:
    types = ["cloud.alibabacloud.com/load-balancer-backend-ready", "service.readiness.alibabacloud.com/web"]
    pod = {"spec": {"readinessGates": [{"conditionType": each} for each in [*types, "others.example.com/x"]]}}
    web, other = ({"metadata": {"name": name}} for name in ("web", "other"))
    gates = CLOUD.readiness_gates

    assert gates.of_pod(pod) == tuple(types)
    assert [gates.waits_for(types[0], each) for each in (web, other)] == [True, True]
    assert [gates.waits_for(types[1], each) for each in (web, other)] == [True, False]

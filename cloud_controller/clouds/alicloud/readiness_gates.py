"""Readiness gates of pods: the names that Alibaba Cloud's own controller has for them, and on by default as there."""

from __future__ import annotations

from cloud_controller.clouds.alicloud.annotation_entries import READINESS_GATE
from cloud_controller.clouds.alicloud.annotations import CLASSES
from cloud_controller.load_balancers.readiness_gates import ReadinessGates

GATES = ReadinessGates(
    condition="cloud.alibabacloud.com/load-balancer-backend-ready",
    service_prefix="service.readiness.alibabacloud.com/",
    classes=CLASSES | {None},
    annotations=(READINESS_GATE.name, *READINESS_GATE.aliases),
)

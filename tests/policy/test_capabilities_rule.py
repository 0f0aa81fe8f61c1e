"""Rule `ccm-workload-drop-capabilities`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import CONTAINER, ccm, of, patch

RULE = "ccm-workload-drop-capabilities"
DROPPED = {"drop": ["ALL"]}


def capable(context: Any, **options: Any) -> AnalyzedResource:
    """A CCM whose container has this security context."""
    return ccm(container={"securityContext": context}, **options)


@pytest.mark.parametrize(
    "capabilities", [DROPPED, {"drop": ["NET_RAW", "ALL"]}, {**DROPPED, "add": ["NET_BIND_SERVICE"]}]
)
def test_a_ccm_that_drops_all_and_may_listen_on_a_low_port_passes(pack: PolicyHost, capabilities: Any) -> None:
    assert of(pack.analyze(capable({"capabilities": capabilities})), RULE) == []


@pytest.mark.parametrize(
    ("context", "problem"),
    [
        (None, "keeps capabilities; set capabilities: {drop: [ALL]}"),
        ({"capabilities": {"drop": ["NET_RAW"]}}, "keeps capabilities; set capabilities: {drop: [ALL]}"),
        (
            {"capabilities": {**DROPPED, "add": ["NET_BIND_SERVICE", "NET_ADMIN"]}},
            "adds the capabilities NET_ADMIN; allowed: NET_BIND_SERVICE",
        ),
        ({"capabilities": DROPPED, "privileged": True}, "is privileged; remove privileged: true"),
    ],
)
def test_a_ccm_with_capabilities_is_reported(pack: PolicyHost, context: Any, problem: str) -> None:
    [finding] = [finding for finding in pack.analyze(capable(context)) if finding.policy == RULE]

    assert (finding.level, finding.severity) == ("advisory", "medium")
    assert finding.message == f"container manager {problem}"


def test_init_containers_are_judged_too(pack: PolicyHost) -> None:
    bare = {"name": "wait", "image": "registry.example/tools:1.0.0"}

    [message] = [each.message for each in pack.analyze(ccm(initContainers=[bare])) if each.policy == RULE]

    assert message.startswith("container wait keeps capabilities")
    assert of(pack.analyze(ccm(initContainers=[{**CONTAINER, "name": "wait"}])), RULE) == []


def test_a_patch_may_leave_capabilities_to_others_but_not_add_some(pack: PolicyHost) -> None:
    assert of(pack.analyze(patch(capable(None))), RULE) == []
    assert of(pack.analyze(patch(capable({"capabilities": {"add": ["SYS_ADMIN"]}}))), RULE) == ["advisory"]
    assert of(pack.analyze(patch(capable({"capabilities": {"drop": []}}))), RULE) == ["advisory"]


@pytest.mark.parametrize(
    "context", [UNKNOWN, {"capabilities": UNKNOWN}, {"capabilities": {**DROPPED, "add": [UNKNOWN]}}]
)
def test_unknown_capabilities_are_not_evaluated(pack: PolicyHost, context: Any) -> None:
    assert of(pack.analyze(capable(context)), RULE) == ["not-evaluated"]

"""Rule `ccm-workload-run-as-non-root`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import CONTAINER, ccm, of, patch

RULE = "ccm-workload-run-as-non-root"
LOCKED = {"allowPrivilegeEscalation": False}


def secured(container: Any = None, pod: Any = None, **options: Any) -> AnalyzedResource:
    """A CCM with these security contexts; by default it cannot become root."""
    return ccm(
        container={"securityContext": LOCKED if container is None else container}, securityContext=pod, **options
    )


@pytest.mark.parametrize(
    ("container", "pod"),
    [
        (LOCKED, {"runAsNonRoot": True}),
        (LOCKED, {"runAsUser": 1000}),
        ({**LOCKED, "runAsNonRoot": True}, None),
        ({**LOCKED, "runAsUser": 1000}, {"runAsUser": 0}),
        ({**LOCKED, "runAsUser": 1000, "runAsNonRoot": False}, None),
    ],
)
def test_a_ccm_that_is_not_root_and_cannot_become_root_passes(pack: PolicyHost, container: Any, pod: Any) -> None:
    assert of(pack.analyze(secured(container, pod)), RULE) == []


@pytest.mark.parametrize(
    ("container", "pod", "problem"),
    [
        (LOCKED, None, "may run as root"),
        (LOCKED, {"runAsNonRoot": False}, "may run as root"),
        ({**LOCKED, "runAsNonRoot": False}, {"runAsNonRoot": True}, "may run as root"),
        (LOCKED, {"runAsUser": 0}, "runs as root (runAsUser 0)"),
        (LOCKED, {"runAsUser": 0, "runAsNonRoot": True}, "runs as root (runAsUser 0)"),
        ({**LOCKED, "runAsUser": 0}, {"runAsUser": 1000}, "runs as root (runAsUser 0)"),
        ({}, {"runAsUser": 1000}, "can become root"),
        ({"allowPrivilegeEscalation": True}, {"runAsUser": 1000}, "can become root"),
        ({}, {"runAsUser": 1000, **LOCKED}, "can become root"),
    ],
)
def test_a_ccm_that_is_root_or_can_become_root_is_reported(
    pack: PolicyHost, container: Any, pod: Any, problem: str
) -> None:
    [finding] = [finding for finding in pack.analyze(secured(container, pod)) if finding.policy == RULE]

    assert (finding.level, finding.severity) == ("advisory", "high")
    assert finding.message.startswith(f"container manager {problem}")


def test_init_containers_and_sidecars_are_judged_too(pack: PolicyHost) -> None:
    root = {"image": "registry.example/tools:1.0.0", "securityContext": {**LOCKED, "runAsUser": 0}}
    workload = ccm(containers=[CONTAINER, {**root, "name": "proxy"}], initContainers=[{**root, "name": "wait"}])

    [finding] = [finding for finding in pack.analyze(workload) if finding.policy == RULE]

    assert "container proxy runs as root" in finding.message
    assert "container wait runs as root" in finding.message


def test_a_patch_may_leave_the_user_to_others_but_not_set_root(pack: PolicyHost) -> None:
    assert of(pack.analyze(patch(secured({}))), RULE) == []
    assert of(pack.analyze(patch(secured({"runAsUser": 0}))), RULE) == ["advisory"]
    assert of(pack.analyze(patch(secured({"runAsNonRoot": False}))), RULE) == ["advisory"]
    assert of(pack.analyze(patch(secured({"allowPrivilegeEscalation": True}))), RULE) == ["advisory"]


@pytest.mark.parametrize(
    "unknown",
    [
        secured(UNKNOWN),
        secured(LOCKED, UNKNOWN),
        secured(LOCKED, {"runAsUser": UNKNOWN}),
        secured({"allowPrivilegeEscalation": UNKNOWN}, {"runAsNonRoot": True}),
    ],
)
def test_an_answer_that_depends_on_an_unknown_value_is_not_evaluated(
    pack: PolicyHost, unknown: AnalyzedResource
) -> None:
    assert of(pack.analyze(unknown), RULE) == ["not-evaluated"]


def test_a_certain_violation_is_reported_beside_an_unknown_value(pack: PolicyHost) -> None:
    assert of(pack.analyze(secured({}, {"runAsUser": UNKNOWN})), RULE) == ["advisory"]

"""Rule `ccm-workload-set-seccomp`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import CONTAINER, ccm, of, patch, without

RULE = "ccm-workload-set-seccomp"


def profiled(pod: Any, container: Any = None, **options: Any) -> AnalyzedResource:
    """A CCM with these security contexts."""
    return ccm(container={"securityContext": container or {}}, securityContext=pod, **options)


def profile(type: Any) -> dict[str, Any]:
    return {"seccompProfile": {"type": type}}


@pytest.mark.parametrize(
    ("pod", "container"),
    [
        (profile("RuntimeDefault"), None),
        (profile("Localhost"), None),
        (None, profile("RuntimeDefault")),
        (profile("Unconfined"), profile("RuntimeDefault")),
    ],
)
def test_a_profile_of_the_pod_or_of_the_container_passes(pack: PolicyHost, pod: Any, container: Any) -> None:
    assert of(pack.analyze(profiled(pod, container)), RULE) == []


@pytest.mark.parametrize(
    ("pod", "container"),
    [
        (None, None),
        (profile("Unconfined"), None),
        (profile("RuntimeDefault"), profile("Unconfined")),
    ],
)
def test_a_ccm_without_a_profile_is_reported(pack: PolicyHost, pod: Any, container: Any) -> None:
    [finding] = [finding for finding in pack.analyze(profiled(pod, container)) if finding.policy == RULE]

    assert (finding.level, finding.severity) == ("advisory", "medium")
    assert finding.message == ("container manager has no seccomp profile; set seccompProfile: {type: RuntimeDefault}")


def test_the_profile_of_a_privileged_container_does_not_count(pack: PolicyHost) -> None:
    workload = profiled(profile("RuntimeDefault"), {"privileged": True})

    [message] = [finding.message for finding in pack.analyze(workload) if finding.policy == RULE]

    assert message == "container manager is privileged, so that its seccomp profile has no effect"


def test_init_containers_are_judged_too(pack: PolicyHost) -> None:
    wait = {**without(CONTAINER, "args"), "name": "wait", "securityContext": profile("Unconfined")}

    [message] = [each.message for each in pack.analyze(ccm(initContainers=[wait])) if each.policy == RULE]

    assert message.startswith("container wait has no seccomp profile")


def test_a_patch_may_leave_the_profile_to_others_but_not_set_none(pack: PolicyHost) -> None:
    assert of(pack.analyze(patch(profiled(None))), RULE) == []
    assert of(pack.analyze(patch(profiled(profile("Unconfined")))), RULE) == ["advisory"]


@pytest.mark.parametrize("pod", [UNKNOWN, {"seccompProfile": UNKNOWN}, profile(UNKNOWN)])
def test_an_unknown_profile_is_not_evaluated(pack: PolicyHost, pod: Any) -> None:
    assert of(pack.analyze(profiled(pod)), RULE) == ["not-evaluated"]


def test_an_unknown_profile_of_the_pod_does_not_matter_beside_the_containers(pack: PolicyHost) -> None:
    assert of(pack.analyze(profiled(profile(UNKNOWN), profile("RuntimeDefault"))), RULE) == []

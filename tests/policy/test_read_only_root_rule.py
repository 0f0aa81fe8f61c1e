"""Rule `ccm-workload-read-only-root`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import CONTAINER, ccm, of, patch, without

RULE = "ccm-workload-read-only-root"


def rooted(read_only: Any, **options: Any) -> AnalyzedResource:
    return ccm(container={"securityContext": {"readOnlyRootFilesystem": read_only}}, **options)


def test_a_ccm_with_a_read_only_root_passes(pack: PolicyHost) -> None:
    assert of(pack.analyze(rooted(True)), RULE) == []


@pytest.mark.parametrize(
    "workload",
    [
        rooted(None),
        rooted(False),
        ccm(container={"securityContext": None}),
        # A pod has no such field: the API server ignores it.
        rooted(None, securityContext={"readOnlyRootFilesystem": True}),
    ],
)
def test_a_ccm_that_can_write_to_its_root_is_reported(pack: PolicyHost, workload: AnalyzedResource) -> None:
    [finding] = [finding for finding in pack.analyze(workload) if finding.policy == RULE]

    assert (finding.level, finding.severity) == ("advisory", "medium")
    assert finding.message == ("container manager can write to its root filesystem; set readOnlyRootFilesystem: true")


def test_init_containers_are_judged_too(pack: PolicyHost) -> None:
    wait = {**without(CONTAINER, "args", "securityContext"), "name": "wait"}

    [message] = [each.message for each in pack.analyze(ccm(initContainers=[wait])) if each.policy == RULE]

    assert message.startswith("container wait can write")


def test_a_patch_may_leave_the_root_to_others_but_not_make_it_writable(pack: PolicyHost) -> None:
    assert of(pack.analyze(patch(rooted(None))), RULE) == []
    assert of(pack.analyze(patch(rooted(False))), RULE) == ["advisory"]


def test_an_unknown_value_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze(rooted(UNKNOWN)), RULE) == ["not-evaluated"]

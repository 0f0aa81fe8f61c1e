"""Rule `ccm-workload-set-resources`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, PropertyMap
from tests.policy_objects import CONTAINER, ccm, of, patch, without

RULE = "ccm-workload-set-resources"
REQUESTS = {"cpu": "100m", "memory": "128Mi"}
LIMITS = {"memory": "512Mi"}


def with_resources(resources: Any, **options: Any) -> AnalyzedResource:
    return ccm(container={"resources": resources}, **options)


@pytest.mark.parametrize(
    "resources",
    [
        {"requests": REQUESTS, "limits": LIMITS},
        {"requests": {"cpu": 0.1, "memory": 134217728}, "limits": {"memory": 536870912}},
        {"requests": {"cpu": "100m"}, "limits": LIMITS},
        {"limits": {"cpu": "1", "memory": "512Mi"}},
    ],
)
def test_requests_and_a_memory_limit_are_enough_and_a_limit_counts_as_its_request(
    pack: PolicyHost, resources: PropertyMap
) -> None:
    assert of(pack.analyze(with_resources(resources)), RULE) == []


@pytest.mark.parametrize(
    ("resources", "missing"),
    [
        (None, "no CPU request, no memory request, no memory limit"),
        ({}, "no CPU request, no memory request, no memory limit"),
        ({"requests": REQUESTS}, "no memory limit"),
        ({"limits": LIMITS}, "no CPU request"),
        ({"requests": {"cpu": "0", "memory": "0Mi"}, "limits": LIMITS}, "no CPU request"),
        ({"requests": REQUESTS, "limits": {"cpu": "1", "memory": 0}}, "no memory limit"),
        ({"requests": REQUESTS, "limits": {"memory": "0e3"}}, "no memory limit"),
        ({"requests": REQUESTS, "limits": {"memory": "0E+9"}}, "no memory limit"),
        ({"requests": REQUESTS, "limits": {"memory": "0.0Gi"}}, "no memory limit"),
        ({"requests": {"cpu": "0m", "memory": "64Mi"}, "limits": LIMITS}, "no CPU request"),
    ],
)
def test_missing_requests_and_limits_are_named(pack: PolicyHost, resources: Any, missing: str) -> None:
    [finding] = pack.analyze(with_resources(resources))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "medium")
    assert finding.message == f"container manager has {missing}"


def test_every_container_of_a_ccm_is_judged_init_containers_too(pack: PolicyHost) -> None:
    bare = {**without(CONTAINER, "args", "resources"), "name": "proxy", "image": "registry.example/proxy:1.0.0"}

    [finding] = pack.analyze(ccm(containers=[CONTAINER, bare], initContainers=[{**bare, "name": "wait"}]))

    assert finding.message == (
        "container proxy has no CPU request, no memory request, no memory limit; "
        "container wait has no CPU request, no memory request, no memory limit"
    )


def test_resources_of_the_whole_pod_count_for_its_containers(pack: PolicyHost) -> None:
    bare = {"name": "manager", "image": "registry.example/cloud-controller:0.1.0"}
    whole = {"requests": REQUESTS, "limits": LIMITS}

    assert of(pack.analyze(ccm(containers=[bare], resources=whole)), RULE) == []
    assert of(pack.analyze(ccm(containers=[bare], resources={"requests": REQUESTS})), RULE) == ["advisory"]


def test_a_patch_may_leave_resources_to_others_but_not_set_them_to_zero(pack: PolicyHost) -> None:
    assert of(pack.analyze(patch(with_resources(None))), RULE) == []
    assert of(pack.analyze(patch(with_resources({"limits": {"memory": "1Gi"}}))), RULE) == []

    [finding] = pack.analyze(patch(with_resources({"limits": {"memory": "0Mi"}})))

    assert (finding.policy, finding.message) == (RULE, "container manager has no memory request, no memory limit")


@pytest.mark.parametrize(
    "unknown",
    [
        with_resources(UNKNOWN),
        with_resources({"requests": UNKNOWN, "limits": LIMITS}),
        with_resources({"requests": {**REQUESTS, "cpu": UNKNOWN}, "limits": LIMITS}),
    ],
)
def test_an_answer_that_depends_on_an_unknown_value_is_not_evaluated(
    pack: PolicyHost, unknown: AnalyzedResource
) -> None:
    assert of(pack.analyze(unknown), RULE) == ["not-evaluated"]


def test_missing_resources_are_reported_beside_an_unknown_value(pack: PolicyHost) -> None:
    [finding] = pack.analyze(with_resources({"requests": {"cpu": UNKNOWN}}))

    assert finding.message == "container manager has no memory request, no memory limit"

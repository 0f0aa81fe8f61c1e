"""Rule `lb-service-acknowledge-address-change`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.controllers.service.address_changes import ANNOTATION
from cloud_stacks.policies.host import PolicyHost
from local.plugins.values import UNKNOWN
from policy.checklist.address_changes import ACKNOWLEDGEMENT
from tests.policy_objects import EXEMPT, exemption, of, resource, service, start

pytestmark = pytest.mark.integration

RULE = "lb-service-acknowledge-address-change"
SCHEME = "service.beta.kubernetes.io/dlb-scheme"
INTERNAL_OCTAVIA = "service.beta.kubernetes.io/openstack-internal-load-balancer"
INTERNAL_NLB = "service.beta.kubernetes.io/aws-load-balancer-internal"
OLD, NEW = "ba9876543210", "0123456789ab"


def stored(id: str, annotations: dict[str, Any]) -> dict[str, Any]:
    return {"type": "kubernetes:core/v1:Service", "id": id, "inputs": {"metadata": {"annotations": annotations}}}


@pytest.fixture(scope="module")
def comparing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolicyHost]:
    """The pack with the state of a stack before the change, as `pulumi stack export` writes it."""
    before = {
        "version": 3,
        "deployment": {
            "resources": [
                {"type": "pulumi:pulumi:Stack"},
                stored("kube-system/web", {}),
                stored("kube-system/inside", {SCHEME: "internal", ACKNOWLEDGEMENT: OLD}),
                stored(f"kube-system/{EXEMPT}", {}),
                stored("default/bare", {}),
            ]
        },
    }
    state = tmp_path_factory.mktemp("state") / "before.json"
    state.write_text(json.dumps(before))
    host = start({RULE: {"stateBefore": str(state), "exempt": [exemption(f"kube-system/{EXEMPT}")]}})
    yield host
    host.close()


def test_the_rule_and_the_controllers_mean_the_same_annotation() -> None:
    assert ACKNOWLEDGEMENT == ANNOTATION


@pytest.mark.parametrize(
    ("name", "annotations", "said"),
    [
        ("web", {SCHEME: "internal"}, f"annotation {SCHEME} changes from 'internet-facing' to 'internal'"),
        ("web", {INTERNAL_NLB: "true"}, f"annotation {INTERNAL_NLB} changes from False to True"),
        ("inside", {}, f"annotation {SCHEME} changes from 'internal' to 'internet-facing'"),
        ("inside", {ACKNOWLEDGEMENT: OLD}, f"annotation {SCHEME} changes from 'internal' to 'internet-facing'"),
    ],
)
def test_a_change_that_replaces_the_load_balancer_is_reported(
    comparing: PolicyHost, name: str, annotations: dict[str, str], said: str
) -> None:
    findings = [each for each in comparing.analyze(service(name, annotations=annotations)) if each.policy == RULE]

    assert [(each.level, each.severity) for each in findings] == [("advisory", "high")]
    assert findings[0].message == f"{said}: another load balancer, and so another address"


def test_a_change_in_place_that_takes_an_address_away_is_reported(comparing: PolicyHost) -> None:
    changed = service("web", annotations={INTERNAL_OCTAVIA: "true"})

    [message] = [each.message for each in comparing.analyze(changed) if each.policy == RULE]

    assert (
        message == f"annotation {INTERNAL_OCTAVIA} changes from None to True: clients may then reach it only at others"
    )


def test_a_service_without_a_namespace_is_one_of_default(comparing: PolicyHost) -> None:
    props = {"metadata": {"name": "bare", "annotations": {SCHEME: "internal"}}, "spec": {"type": "LoadBalancer"}}

    assert of(comparing.analyze(resource("kubernetes:core/v1:Service", props)), RULE) == ["advisory"]


@pytest.mark.parametrize(
    ("name", "annotations"),
    [
        pytest.param("web", {SCHEME: "internal", ACKNOWLEDGEMENT: NEW}, id="acknowledged"),
        pytest.param("inside", {ACKNOWLEDGEMENT: NEW}, id="acknowledged anew"),
        pytest.param("web", {SCHEME: "internet-facing"}, id="the default, said"),
        pytest.param("web", {"service.beta.kubernetes.io/dlb-listener-maxqps": "7"}, id="a change in place"),
        pytest.param("later", {SCHEME: "internal"}, id="a new Service"),
        pytest.param(EXEMPT, {SCHEME: "internal"}, id="exempt"),
    ],
)
def test_what_keeps_the_address_or_is_acknowledged_passes(
    comparing: PolicyHost, name: str, annotations: dict[str, str]
) -> None:
    assert of(comparing.analyze(service(name, annotations=annotations)), RULE) == []


def test_other_controllers_services_and_other_types_are_left_alone(comparing: PolicyHost) -> None:
    theirs = service(annotations={SCHEME: "internal"}, spec={"loadBalancerClass": "example.com/theirs"})

    assert of(comparing.analyze(theirs), RULE) == []
    assert of(comparing.analyze(service(type="NodePort", annotations={SCHEME: "internal"})), RULE) == []


def test_without_the_state_there_is_nothing_to_compare(pack: PolicyHost) -> None:
    assert of(pack.analyze(service(annotations={SCHEME: "internal"})), RULE) == []


def test_an_unknown_value_that_decides_is_not_evaluated(comparing: PolicyHost) -> None:
    assert of(comparing.analyze(service(annotations={SCHEME: UNKNOWN})), RULE) == ["not-evaluated"]
    changed = {SCHEME: "internal", ACKNOWLEDGEMENT: UNKNOWN}
    assert of(comparing.analyze(service(annotations=changed)), RULE) == ["not-evaluated"]


def test_an_unknown_value_that_decides_nothing_is_ignored(comparing: PolicyHost) -> None:
    assert of(comparing.analyze(service(annotations={"other": UNKNOWN})), RULE) == []
    both: dict[str, Any] = {SCHEME: "internal", "other": UNKNOWN}
    assert of(comparing.analyze(service(annotations=both)), RULE) == ["advisory"]


def test_a_state_that_cannot_be_read_is_an_error_and_no_silent_pass(tmp_path: Path) -> None:
    host = start({RULE: {"stateBefore": str(tmp_path / "missing.json")}})
    try:
        with pytest.raises(Exception, match=r"missing\.json"):
            host.analyze(service(annotations={SCHEME: "internal"}))
    finally:
        host.close()

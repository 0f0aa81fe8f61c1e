"""Rules `aws-ccm-reach-metadata` and `alicloud-ccm-reach-metadata`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.cluster_objects import EXEMPT_RESOURCE
from tests.policy_objects import EXEMPT, ccm, of, resource

AWS, ALICLOUD = "aws-ccm-reach-metadata", "alicloud-ccm-reach-metadata"
LABELS = {"app": "ccm"}
NOT_OURS = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["ccm"]}]}
ROLE = {"env": [{"name": "AWS_ROLE_ARN", "value": "arn:aws:iam::123456789012:role/ccm"}]}


def template(name: str = "workers", **options: Any) -> AnalyzedResource:
    given = {"httpTokens": "required", "httpPutResponseHopLimit": 1, **options}
    return resource("aws:ec2/launchTemplate:LaunchTemplate", {"metadataOptions": given}, name)


def ecs(**options: Any) -> AnalyzedResource:
    return resource("alicloud:ecs/instance:Instance", {"httpTokens": "required", **options}, "machine")


def manager(name: str = "ccm", **more: Any) -> AnalyzedResource:
    made = ccm(name=name, **more)
    made.properties["spec"]["template"]["metadata"] = {"labels": LABELS}
    return made


def policy(
    *egress: Any, labels: Any = LABELS, selector: Any = None, name: str = "policy", types: Any = ("Egress",)
) -> AnalyzedResource:
    spec = {"podSelector": selector or {"matchLabels": labels}, "policyTypes": [*types], "egress": [*egress]}
    props = {"metadata": {"name": "ccm", "namespace": "kube-system"}, "spec": spec}
    return resource("kubernetes:networking.k8s.io/v1:NetworkPolicy", props, name)


def account(namespace: str = "kube-system", **annotations: str) -> AnalyzedResource:
    props = {"metadata": {"name": "ccm", "namespace": namespace, "annotations": annotations}}
    return resource("kubernetes:core/v1:ServiceAccount", props, "account")


def to(cidr: str, *but: str) -> dict[str, Any]:
    return {"to": [{"ipBlock": {"cidr": cidr, "except": [*but]}}]}


@pytest.mark.parametrize(
    ("rule", "resources", "said"),
    [
        (AWS, [template(httpTokens="optional")], "answers without a session"),
        (AWS, [resource("aws:ec2/instance:Instance", {"ami": "x"})], "answers without a session"),
        (
            AWS,
            [template(), manager()],
            "the metadata service of workers does not answer with httpPutResponseHopLimit 1",
        ),
        (
            AWS,
            [template(), manager(serviceAccountName="ccm"), account("default", **{"eks.amazonaws.com/role-arn": "x"})],
            "the metadata service of workers does not answer with httpPutResponseHopLimit 1",
        ),
        (AWS, [template(httpEndpoint="disabled"), manager(hostNetwork=True)], "of workers is switched off"),
        (AWS, [template(httpPutResponseHopLimit=2), manager(), policy()], "keeps it from the metadata service"),
        (
            AWS,
            [template(httpPutResponseHopLimit=2), manager(), policy(to("0.0.0.0/0", "169.254.0.0/16"))],
            "keeps it from the metadata service (169.254.169.254)",
        ),
        (
            AWS,
            [template(httpPutResponseHopLimit=2), manager(), policy(to("10.0.0.0/8"), types=[])],
            "keeps it from the metadata service (169.254.169.254)",
        ),
        (ALICLOUD, [ecs(httpTokens="optional")], "answers without a session"),
        (ALICLOUD, [ecs(httpEndpoint="disabled"), manager()], "of machine is switched off"),
        (
            ALICLOUD,
            [ecs(), manager(), policy(to("10.0.0.0/8"))],
            "keeps it from the metadata service (100.100.100.200)",
        ),
        (
            ALICLOUD,
            [resource("alicloud:cs/nodePool:NodePool", {"instanceMetadataOptions": {"httpTokens": "optional"}})],
            "answers without a session",
        ),
    ],
)
def test_a_service_without_sessions_or_out_of_reach_is_reported(
    pack: PolicyHost, rule: str, resources: list[AnalyzedResource], said: str
) -> None:
    messages = [each.message for each in pack.analyze_stack(resources) if each.policy == rule]

    assert len(messages) == 1
    assert said in messages[0]


@pytest.mark.parametrize(
    ("rule", "resources"),
    [
        (AWS, [template(), manager(hostNetwork=True), policy()]),
        (AWS, [template(httpPutResponseHopLimit=2), manager(), policy(to("0.0.0.0/0"))]),
        (AWS, [template(httpPutResponseHopLimit=2), manager(), policy({"ports": [{"port": 443}]})]),
        (AWS, [template(httpPutResponseHopLimit=2), manager(), policy(labels={"app": "other"})]),
        (AWS, [template(), manager(container=ROLE), policy()]),
        (AWS, [template(), manager(serviceAccountName="ccm"), account(**{"eks.amazonaws.com/role-arn": "arn:x"})]),
        (AWS, [template(), manager(serviceAccount="ccm"), account(**{"eks.amazonaws.com/role-arn": "arn:x"})]),
        (AWS, [template(httpPutResponseHopLimit=2), manager(), policy(), policy(to("0.0.0.0/0"), name="open")]),
        (AWS, [template(httpPutResponseHopLimit=2), manager(), policy(selector=NOT_OURS)]),
        (AWS, [template(httpPutResponseHopLimit=2), manager(), policy(to("10.0.0.0/8"), types=["Ingress"])]),
        (AWS, [template(httpPutResponseHopLimit=2), manager(), policy(types=[])]),
        (AWS, [template(), manager(EXEMPT)]),
        (AWS, [template(EXEMPT_RESOURCE, httpTokens="optional")]),
        (AWS, [manager()]),
        (AWS, [template(), replace(manager(), type="kubernetes:apps/v1:DaemonSetPatch")]),
        (ALICLOUD, [ecs(httpPutResponseHopLimit=1), manager()]),
    ],
    ids=[
        "host network",
        "everywhere",
        "every address",
        "other pods",
        "role by variable",
        "role by ServiceAccount",
        "role by ServiceAccount in the field's former name",
        "another policy lets it out",
        "other pods by expression",
        "policy for ingress, with egress that does not count",
        "policy without types or egress",
        "exempt CCM",
        "exempt machines",
        "no machines",
        "patch",
        "hops are not counted",
    ],
)
def test_a_service_in_reach_or_not_needed_passes(
    pack: PolicyHost, rule: str, resources: list[AnalyzedResource]
) -> None:
    assert of(pack.analyze_stack(resources), rule) == []


def test_a_policy_for_a_bare_pod_is_found_by_the_pods_labels(pack: PolicyHost) -> None:
    pod = manager().properties["spec"]["template"]
    metadata = {"name": "ccm", "namespace": "kube-system", "labels": LABELS}
    bare = resource("kubernetes:core/v1:Pod", {**pod, "metadata": metadata}, "ccm")

    assert of(pack.analyze_stack([template(httpPutResponseHopLimit=2), bare, policy()]), AWS) == ["advisory"]


@pytest.mark.parametrize(("values", "levels"), [(["web"], []), (["ccm", "web"], ["advisory"])])
def test_the_expressions_of_a_policy_decide_whose_pods_it_is_for(
    pack: PolicyHost, values: list[str], levels: list[str]
) -> None:
    selecting = policy(labels=None)
    expression = {"key": "app", "operator": "In", "values": [*values]}
    selecting.properties["spec"]["podSelector"] = {"matchExpressions": [expression]}

    found = pack.analyze_stack([template(httpPutResponseHopLimit=2), manager(), selecting])

    assert of(found, AWS) == levels


def test_unknown_options_are_not_evaluated(pack: PolicyHost) -> None:
    machine = resource("aws:ec2/launchTemplate:LaunchTemplate", {"metadataOptions": UNKNOWN})

    assert of(pack.analyze_stack([machine]), AWS) == ["not-evaluated"]


def test_a_message_shows_no_credential(pack: PolicyHost) -> None:
    keys = {"env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "hunter2"}]}

    findings = pack.analyze_stack([template(httpEndpoint="disabled"), manager(container=keys)])

    assert of(findings, AWS) == ["advisory"]
    assert "hunter2" not in " ".join(each.message for each in findings)

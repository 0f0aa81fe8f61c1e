"""Rule `ccm-network-restrict-egress`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cloud_controller.pod_network import policy as ours
from cloud_stacks.policies.host import AnalyzedProvider, AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import ccm, of, resource, start

RULE = "ccm-network-restrict-egress"
LABELS = {"k8s-app": "ccm"}
EVERYTHING: list[Any] = [{}]


def manager(**pod: Any) -> AnalyzedResource:
    """A CCM whose pods have LABELS."""
    made = ccm(**pod)
    template = {**made.properties["spec"]["template"], "metadata": {"labels": {**LABELS, "tier": "system"}}}
    properties = {**made.properties, "spec": {**made.properties["spec"], "template": template}}
    return resource(made.type, properties, made.name)


def policy(namespace: str = "kube-system", **spec: Any) -> AnalyzedResource:
    """Ours, with other fields of its spec."""
    whole = {**ours(LABELS, [10258], ()), **spec}
    props = {"metadata": {"name": "ccm", "namespace": namespace}, "spec": whole}
    return resource("kubernetes:networking.k8s.io/v1:NetworkPolicy", props, "policy")


@pytest.mark.parametrize(
    "restricting",
    [
        policy(),
        policy(egress=[]),
        policy(podSelector={}),
        policy(podSelector={"matchExpressions": [{"key": "k8s-app", "operator": "Exists"}]}),
        policy(policyTypes=None),
        policy(egress=[{"ports": [{"port": 443}]}]),
        policy(egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]),
    ],
)
def test_a_policy_that_selects_the_ccms_pods_and_limits_egress_is_enough(
    pack: PolicyHost, restricting: AnalyzedResource
) -> None:
    assert of(pack.analyze_stack([manager(), restricting]), RULE) == []


def as_pod(whole: AnalyzedResource) -> AnalyzedResource:
    return resource("kubernetes:core/v1:Pod", nested(whole.properties["spec"]["template"]), whole.name)


def as_cron_job(whole: AnalyzedResource) -> AnalyzedResource:
    job = {"spec": {"template": whole.properties["spec"]["template"]}}
    return resource("kubernetes:batch/v1:CronJob", nested({"spec": {"jobTemplate": job}}), whole.name)


def nested(content: Any) -> Any:
    """In the CCM's namespace."""
    return {**content, "metadata": {"name": "ccm", "namespace": "kube-system", **content.get("metadata", {})}}


@pytest.mark.parametrize("shape", [as_pod, as_cron_job])
def test_the_pods_of_every_kind_of_workload_are_known_by_their_labels(pack: PolicyHost, shape: Any) -> None:
    assert of(pack.analyze_stack([shape(manager()), policy()]), RULE) == []
    other = policy(podSelector={"matchLabels": {"k8s-app": "web"}})
    assert of(pack.analyze_stack([shape(manager()), other]), RULE) == ["advisory"]


@pytest.mark.parametrize(
    "useless",
    [
        policy(namespace="default"),
        policy(podSelector={"matchLabels": {"k8s-app": "web"}}),
        policy(podSelector={"matchExpressions": [{"key": "k8s-app", "operator": "DoesNotExist"}]}),
        policy(policyTypes=["Ingress"]),
        policy(policyTypes=None, egress=None),
        policy(egress=EVERYTHING),
        policy(egress=[{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]),
        policy(egress=[{"ports": [{"port": 443}]}, {"to": [{"ipBlock": {"cidr": "::/0"}}]}]),
    ],
)
def test_a_policy_that_is_not_the_ccms_or_limits_nothing_is_not(pack: PolicyHost, useless: AnalyzedResource) -> None:
    workload = manager()

    [finding] = [each for each in pack.analyze_stack([workload, useless]) if each.policy == RULE]

    assert (finding.urn, finding.level, finding.severity) == (workload.urn, "advisory", "medium")
    assert finding.message == "no NetworkPolicy selects its pods and limits their egress"


def test_the_labels_of_a_bare_pod_are_its_own(pack: PolicyHost) -> None:
    template = manager().properties["spec"]["template"]
    pod = resource("kubernetes:core/v1:Pod", {**template, "metadata": {"namespace": "kube-system", "labels": LABELS}})

    assert of(pack.analyze_stack([pod, policy()]), RULE) == []
    assert of(pack.analyze_stack([pod]), RULE) == ["advisory"]


def test_a_policy_of_another_cluster_does_not_count(pack: PolicyHost) -> None:
    other = AnalyzedProvider("pulumi:providers:kubernetes", "urn:pulumi:dev::sample::p::there", "there")
    made = policy()

    found = pack.analyze_stack([manager(), resource(made.type, made.properties, "policy", provider=other)])

    assert of(found, RULE) == ["advisory"]


def test_a_policy_in_a_list_counts(pack: PolicyHost) -> None:
    listed = resource("kubernetes:networking.k8s.io/v1:NetworkPolicyList", {"items": [policy().properties]}, "all")

    assert of(pack.analyze_stack([manager(), listed]), RULE) == []


@pytest.mark.parametrize("unknown", [policy(egress=UNKNOWN), policy(podSelector={"matchLabels": {"k8s-app": UNKNOWN}})])
def test_a_policy_that_is_not_known_yet_is_not_evaluated(pack: PolicyHost, unknown: AnalyzedResource) -> None:
    assert of(pack.analyze_stack([manager(), unknown]), RULE) == ["not-evaluated"]


# --------------------------------------------------------------------------------- in the network of its machine


def on_aws(*groups: str, **rules: dict[str, Any]) -> list[AnalyzedResource]:
    """A launch template in these security groups, whose rules for egress are given by the groups' names."""
    made = {name: resource("aws:ec2/securityGroup:SecurityGroup", {}, name) for name in groups}
    machine = resource(
        "aws:ec2/launchTemplate:LaunchTemplate",
        {},
        "machine",
        property_dependencies={"vpcSecurityGroupIds": [made[name].urn for name in groups]},
    )
    kind = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    of_rules = [
        resource(kind, props, name, property_dependencies={"securityGroupId": [made[name].urn]})
        for name, props in rules.items()
    ]
    return [*made.values(), machine, *of_rules]


OPEN = {"ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0"}
HTTPS = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIpv4": "0.0.0.0/0"}


@pytest.mark.parametrize("machines", [on_aws("plane", plane=HTTPS), on_aws("plane")])
def test_on_aws_a_machine_whose_groups_all_limit_egress_is_enough(
    pack: PolicyHost, machines: list[AnalyzedResource]
) -> None:
    assert of(pack.analyze_stack([manager(hostNetwork=True), *machines]), RULE) == []


@pytest.mark.parametrize(
    "machines",
    [
        [],
        on_aws("plane", plane=OPEN),
        on_aws("plane", plane={"ipProtocol": "-1", "cidrIpv6": "::/0"}),
        on_aws("plane", "nodes", plane=HTTPS, nodes=OPEN),
        on_aws(),
    ],
)
def test_on_aws_one_open_group_of_a_machine_opens_it(pack: PolicyHost, machines: list[AnalyzedResource]) -> None:
    [finding] = [e for e in pack.analyze_stack([manager(hostNetwork=True), *machines]) if e.policy == RULE]

    assert "no machine of the stack has a security group that limits egress" in finding.message
    assert "`limitedBy`" in finding.message


@pytest.mark.parametrize("kind", ["inline", "rule"])
def test_on_aws_older_forms_of_rules_open_a_machine_too(pack: PolicyHost, kind: str) -> None:
    [group, machine] = on_aws("plane")
    rule = {"protocol": "-1", "cidrBlocks": ["0.0.0.0/0"]}
    more = []
    if kind == "inline":
        group = resource(group.type, {"egress": [rule]}, "plane")
    else:
        dependency = {"securityGroupId": [group.urn]}
        old = "aws:ec2/securityGroupRule:SecurityGroupRule"
        more.append(resource(old, {"type": "egress", **rule}, "old", property_dependencies=dependency))

    assert of(pack.analyze_stack([manager(hostNetwork=True), group, machine, *more]), RULE) == ["advisory"]


def on_alicloud(*rules: dict[str, Any]) -> list[AnalyzedResource]:
    """An instance in two security groups, the first of which has these rules for egress."""
    kind = "alicloud:ecs/securityGroup:SecurityGroup"
    plane, nodes = resource(kind, {}, "plane"), resource(kind, {}, "nodes")
    machine = resource(
        "alicloud:ecs/instance:Instance",
        {},
        "machine",
        property_dependencies={"securityGroups": [plane.urn, nodes.urn]},
    )
    of_rules = [
        resource(
            "alicloud:ecs/securityGroupRule:SecurityGroupRule",
            {"type": "egress", "ipProtocol": "all", "cidrIp": "0.0.0.0/0", **props},
            f"rule-{index}",
            property_dependencies={"securityGroupId": [plane.urn]},
        )
        for index, props in enumerate(rules)
    ]
    return [plane, nodes, machine, *of_rules]


def test_on_alibaba_cloud_a_rule_that_drops_the_rest_limits_a_machine_in_whichever_group(pack: PolicyHost) -> None:
    machines = on_alicloud({"policy": "accept", "cidrIp": "10.0.0.0/8"}, {"policy": "drop"})

    assert of(pack.analyze_stack([manager(hostNetwork=True), *machines]), RULE) == []


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [{"policy": "accept", "cidrIp": "10.0.0.0/8"}],
        [{"policy": "accept"}, {"policy": "drop"}],
        [{"policy": "drop", "type": "ingress"}],
        [{"policy": "drop", "cidrIp": "10.0.0.0/8"}],
    ],
)
def test_on_alibaba_cloud_a_basic_group_without_one_lets_everything_out(
    pack: PolicyHost, rules: list[dict[str, Any]]
) -> None:
    assert of(pack.analyze_stack([manager(hostNetwork=True), *on_alicloud(*rules)]), RULE) == ["advisory"]


@pytest.fixture(scope="module")
def behind_a_firewall() -> Iterator[PolicyHost]:
    host = start({RULE: {"limitedBy": "the data centre's firewall"}})
    yield host
    host.close()


@pytest.mark.integration
def test_the_setting_says_what_limits_machines_elsewhere_but_not_pods(behind_a_firewall: PolicyHost) -> None:
    assert of(behind_a_firewall.analyze_stack([manager(hostNetwork=True)]), RULE) == []
    assert of(behind_a_firewall.analyze_stack([manager()]), RULE) == ["advisory"]

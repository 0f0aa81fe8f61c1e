"""What rules leave alone: objects that a setting exempts, and workloads that are no cloud controller manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, Finding, PolicyHost
from local.plugins.values import PropertyMap, Secret
from policy.checklist import POLICIES
from policy.rules import ResourceRule
from tests.policy.services import LEGACY_INTERNAL, balanced, ours, port, vendors
from tests.policy_objects import EXEMPT, ccm, of, resource

WORKLOAD_RULES = [
    rule.name for rule in POLICIES if isinstance(rule, ResourceRule) and rule.name.startswith("ccm-workload-")
]
FLAGS = ("run", "--leader-elect=false", "--log-file=/a")
DLB = "service.beta.kubernetes.io/dlb-"
RBAC = "kubernetes:rbac.authorization.k8s.io/v1"
TRUST = '{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole"}]}'


def worst(name: str = "ccm", image: Any = "registry.example/cloud-controller", args: Any = FLAGS) -> AnalyzedResource:
    """A workload that breaks every rule for the workload of a CCM, where it is one."""
    container = {"name": "manager", "image": image, "args": [*args]}
    return ccm(containers=[container], tolerations=[], priorityClassName=None, securityContext=None, name=name)


@pytest.mark.parametrize("rule", WORKLOAD_RULES)
def test_an_exempt_ccm_and_other_workloads_are_left_alone(pack: PolicyHost, rule: str) -> None:
    other = worst(image="registry.example/cloud-controller-dashboard")

    assert len(of(pack.analyze(worst()), rule)) == 1
    assert of(pack.analyze(worst(EXEMPT)), rule) == []
    assert of(pack.analyze(other), rule) == []


def test_no_rule_shows_a_secret_of_a_ccm(pack: PolicyHost) -> None:
    hidden = worst(
        image=Secret("registry.example/cloud-controller:hush"), args=[*FLAGS[:2], Secret("--log-file=/hush")]
    )

    found = pack.analyze(hidden)

    assert {*WORKLOAD_RULES} <= {finding.policy for finding in found}
    assert not [finding.message for finding in found if "hush" in finding.message]


def named(name: str) -> PropertyMap:
    return {"metadata": {"name": name, "namespace": "kube-system"}}


def binding(name: str) -> AnalyzedResource:
    of_role = {"kind": "ClusterRole", "name": "cluster-admin"}
    props = {**named(name), "roleRef": of_role, "subjects": [{"kind": "User", "name": "alice"}]}
    return resource(f"{RBAC}:ClusterRoleBinding", props)


def role(name: str, *verbs: str) -> AnalyzedResource:
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": [*verbs]}
    return resource(f"{RBAC}:ClusterRole", {**named(name), "rules": [rule]})


def with_config_map(name: str) -> AnalyzedResource:
    mounted = {"volumeMounts": [{"name": "config", "mountPath": "/etc/cloud"}]}
    return ccm(name=name, volumes=[{"name": "config", "configMap": {"name": "cloud-config"}}], container=mounted)


def shared(name: str) -> AnalyzedResource:
    return balanced(name, annotations={f"{DLB}id": "lb-0a"}, loadBalancerSourceRanges=[])


def in_cloud(type: str, **props: Any) -> Callable[[str], list[AnalyzedResource]]:
    """A program with one resource of a cloud, which has the name."""
    return lambda name: [resource(type, props, f"kube-system/{name}")]


WRONG: dict[str, Callable[[str], list[AnalyzedResource]]] = {
    "alicloud-cluster-audit-cloud-calls": lambda name: [
        resource("alicloud:cs/managedKubernetes:ManagedKubernetes", {}),
        *in_cloud("alicloud:actiontrail/trail:Trail")(name),
    ],
    "aws-cluster-audit-cloud-calls": lambda name: [
        resource("aws:eks/cluster:Cluster", {}),
        *in_cloud("aws:cloudtrail/trail:Trail")(name),
    ],
    "ccm-cloud-config-use-secret": lambda name: [with_config_map(name)],
    "ccm-network-restrict-egress": lambda name: [ccm(name=name)],
    "cluster-version-stay-supported": in_cloud("aws:eks/cluster:Cluster", version="1.29"),
    "iam-policy-avoid-wildcards": in_cloud("aws:iam/policy:Policy", policy="not JSON"),
    "iam-role-limit-trust": in_cloud("aws:iam/role:Role", assumeRolePolicy=TRUST),
    "lb-service-annotations-take-effect": lambda name: [
        ours("mycloud"),
        balanced(name, annotations={LEGACY_INTERNAL: "true"}),
    ],
    "lb-service-check-local-nodes": lambda name: [balanced(name, healthCheckNodePort=32100)],
    "lb-service-encrypt-https": lambda name: [ours("mycloud"), balanced(name, port(443))],
    "lb-service-fit-annotations": lambda name: [
        ours("mycloud"),
        balanced(name, annotations={f"{DLB}schema": "internal"}),
    ],
    "lb-service-have-one-owner": lambda name: [ours("aws"), vendors("aws", name=name)],
    "lb-service-log-access": lambda name: [ours("aws"), balanced(name)],
    "lb-service-protect-from-deletion": lambda name: [
        ours("aws"),
        balanced(name, loadBalancerClass="cloud-controller/nlb"),
    ],
    "lb-service-share-without-clash": lambda name: [ours("mycloud"), shared("first"), shared(name)],
    "lb-service-stay-within-quotas": lambda name: [ours("mycloud"), balanced(name, *map(port, range(1, 52)))],
    "ram-policy-avoid-wildcards": in_cloud("alicloud:ram/policy:Policy", policyDocument="not JSON"),
    "ram-role-limit-trust": in_cloud("alicloud:ram/role:Role", assumeRolePolicyDocument=TRUST),
    "rbac-binding-avoid-broad-roles": lambda name: [binding(name)],
    "rbac-role-avoid-powers": lambda name: [role(name, "get")],
    "rbac-role-avoid-wildcards": lambda name: [role(name, "*")],
    "stack-render-objects": in_cloud("kubernetes:helm.sh/v3:Release"),
}
"""By the rule, a program in which an object of this name breaks it. Other rules have the case in their own tables."""


@pytest.mark.parametrize("rule", WRONG)
def test_an_exempt_object_is_left_alone(pack: PolicyHost, rule: str) -> None:
    def found(name: str) -> list[Finding]:
        program = WRONG[rule](name)
        return [*(each for one in program for each in pack.analyze(one)), *pack.analyze_stack(program)]

    assert of(found("wrong"), rule)
    assert of(found(EXEMPT), rule) == []

"""The pack's rules, asked as the engine asks them: through the real analyzer server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.engine.policy_host import AnalyzedProvider, AnalyzedResource, Finding, PolicyHost
from local.engine.values import UNKNOWN, PropertyMap, Secret
from policy.checklist import POLICIES

PACK = Path(__file__).parents[2] / "policy"
TOLERATION = "ccm-workload-tolerate-uninitialized"
SECRET = "ccm-cloud-config-use-secret"
ORDER = "lb-service-depend-on-ccm"
EXEMPT = {"exempt": ["kube-system/exempt"]}

FITTING = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def pack() -> Iterator[PolicyHost]:
    """One server for all tests: a start takes a second."""
    settings = {TOLERATION: EXEMPT, SECRET: EXEMPT, ORDER: {**EXEMPT, "loadBalancerClasses": ["mycloud.io/ours"]}}
    host = PolicyHost.start(
        PACK,
        engine_address="127.0.0.1:1",
        project="sample",
        stack="dev",
        dry_run=True,
        config={},
        policy_config=settings,
    )
    yield host
    host.close()


def resource(kind: str, props: PropertyMap, name: str = "r", **options: Any) -> AnalyzedResource:
    urn = f"urn:pulumi:dev::sample::{kind}::{name}"
    return AnalyzedResource(type=kind, urn=urn, name=name, properties=props, **options)


def ccm(
    tolerations: Any = None,
    image: Any = "registry.local/cloud-controller:dev",
    name: str = "ccm",
    kind: str = "DaemonSet",
    **pod: Any,
) -> AnalyzedResource:
    container = {"name": "manager", "image": image, **pod.pop("container", {})}
    tolerations = [FITTING] if tolerations is None else tolerations
    spec = {"template": {"spec": {"containers": [container], "tolerations": tolerations, **pod}}}
    props = {"metadata": {"name": name, "namespace": "kube-system"}, "spec": spec}
    return resource(f"kubernetes:apps/v1:{kind}", props, name)


def config_map(data: Any, name: str = "settings") -> AnalyzedResource:
    return resource(
        "kubernetes:core/v1:ConfigMap", {"metadata": {"name": name, "namespace": "kube-system"}, "data": data}, name
    )


def service(name: str = "web", type: Any = "LoadBalancer", spec: PropertyMap | None = None, **options: Any) -> Any:
    props = {"metadata": {"name": name, "namespace": "kube-system"}, "spec": {"type": type, **(spec or {})}}
    return resource("kubernetes:core/v1:Service", props, name, **options)


def component(name: str, **options: Any) -> AnalyzedResource:
    return resource("cloudcontroller:index:LoadBalancerService", {}, name, **options)


def of(findings: list[Finding], rule: str) -> list[str]:
    return [finding.level for finding in findings if finding.policy == rule]


# Toleration of uninitialised nodes


@pytest.mark.parametrize(
    "toleration",
    [
        FITTING,
        {"operator": "Exists"},
        {"key": FITTING["key"], "operator": "Exists"},
        {"key": FITTING["key"], "operator": "Exists", "effect": "NoSchedule"},
        {"key": FITTING["key"], "operator": "Equal", "value": "true"},
    ],
)
def test_a_ccm_that_tolerates_uninitialised_nodes_passes(pack: PolicyHost, toleration: PropertyMap) -> None:
    assert pack.analyze(ccm([{"key": "other"}, toleration])) == []


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
        {"key": FITTING["key"], "effect": "NoSchedule"},
        {"key": FITTING["key"], "operator": "Exists", "effect": "NoExecute"},
        {"key": FITTING["key"], "value": "false", "effect": "NoSchedule"},
    ],
)
def test_a_ccm_whose_tolerations_do_not_fit_is_mandatorily_refused(pack: PolicyHost, toleration: PropertyMap) -> None:
    [finding] = pack.analyze(ccm([toleration]))

    assert (finding.policy, finding.level, finding.severity) == (TOLERATION, "mandatory", "critical")
    assert "container manager" in finding.message
    assert finding.urn.endswith("::ccm")


@pytest.mark.parametrize(
    "image",
    [
        "registry.example/cloud-controller-manager/cloud-controller-manager:v1.36.0",
        "registry.example/team/aws-cloud-controller-manager@sha256:0123",
        "hetzner/hcloud-ccm:1",
        "registry.local:5000/cloud-controller",
    ],
)
def test_a_ccm_is_known_by_its_image(pack: PolicyHost, image: str) -> None:
    assert of(pack.analyze(ccm([], image)), TOLERATION) == ["mandatory"]


def test_a_ccm_is_known_by_its_command_too(pack: PolicyHost) -> None:
    workload = ccm([], "registry.example/tools:1", kind="Deployment", container={"command": ["/bin/my-ccm"]})

    assert of(pack.analyze(workload), TOLERATION) == ["mandatory"]


def test_other_workloads_need_no_toleration(pack: PolicyHost) -> None:
    assert pack.analyze(ccm([], "registry.example/cloud-controller-dashboard:1")) == []


def test_an_exempt_ccm_is_left_alone(pack: PolicyHost) -> None:
    assert pack.analyze(ccm([], name="exempt")) == []


@pytest.mark.parametrize("workload", [ccm(UNKNOWN), ccm([UNKNOWN]), ccm([], UNKNOWN)])
def test_unknown_tolerations_or_images_are_not_evaluated(pack: PolicyHost, workload: AnalyzedResource) -> None:
    assert "not-evaluated" in of(pack.analyze(workload), TOLERATION)


def test_a_known_toleration_counts_beside_an_unknown_one(pack: PolicyHost) -> None:
    assert of(pack.analyze(ccm([UNKNOWN, FITTING])), TOLERATION) == []


# Cloud config in a Secret

INI = "[Global]\nendpoint = http://127.16.0.1:7070\ntoken = hush\ncluster-id = c-1\n"
JSON = '{"Global": {"region": "cn-1", "accessKeyID": "id", "accessKeySecret": "hush"}}'
YAML = "auth:\n  tenant-id: t\n  clientSecret: hush\n"


@pytest.mark.parametrize("text", [INI, JSON, YAML])
def test_a_cloud_config_with_credentials_in_a_config_map_is_refused(pack: PolicyHost, text: str) -> None:
    [finding] = pack.analyze(config_map({"file": text}))

    assert (finding.policy, finding.level) == (SECRET, "mandatory")
    assert "data[file]" in finding.message
    assert "hush" not in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "[Global]\nendpoint = http://127.16.0.1:7070\ntoken =\n",
        "password: none of a cloud\n",
        "just a text: [",
        "",
    ],
)
def test_other_texts_may_stand_in_a_config_map(pack: PolicyHost, text: str) -> None:
    assert pack.analyze(config_map({"settings.txt": text})) == []


def test_credentials_under_a_cloud_configs_name_are_refused_whatever_else_they_say(pack: PolicyHost) -> None:
    assert of(pack.analyze(config_map({"cloud.conf": "[a]\npassword = hush\n"})), SECRET) == ["mandatory"]


def test_credentials_that_the_program_calls_secret_are_no_better_in_a_config_map(pack: PolicyHost) -> None:
    assert of(pack.analyze(config_map(Secret({"cloud.conf": INI}))), SECRET) == ["mandatory"]


def test_an_exempt_config_map_is_left_alone(pack: PolicyHost) -> None:
    assert pack.analyze(config_map({"cloud.conf": INI}, name="exempt")) == []


@pytest.mark.parametrize("data", [UNKNOWN, {"cloud.conf": UNKNOWN}])
def test_an_unknown_config_map_is_not_evaluated(pack: PolicyHost, data: Any) -> None:
    assert of(pack.analyze(config_map(data)), SECRET) == ["not-evaluated"]


def test_a_known_violation_counts_beside_an_unknown_value(pack: PolicyHost) -> None:
    assert of(pack.analyze(config_map({"a": UNKNOWN, "cloud.conf": INI})), SECRET) == ["mandatory"]


def mounting(volume: PropertyMap, path: str = "/etc/cloud", flag: str = "--cloud-config=/etc/cloud/cloud.conf") -> Any:
    mounts = [{"name": "config", "mountPath": path}]
    return ccm(volumes=[{"name": "config", **volume}], container={"args": ["run", flag], "volumeMounts": mounts})


@pytest.mark.parametrize(
    "workload",
    [
        mounting({"configMap": {"name": "settings"}}),
        mounting({"projected": {"sources": [{"configMap": {"name": "settings"}}]}}),
        mounting({"configMap": {"name": "cloud-config"}}, path="/elsewhere"),
        mounting({"configMap": {"name": "settings"}}, path="/etc/cloud/cloud.conf"),
    ],
)
def test_a_ccm_that_reads_its_cloud_config_from_a_config_map_is_refused(
    pack: PolicyHost, workload: AnalyzedResource
) -> None:
    assert of(pack.analyze(workload), SECRET) == ["mandatory"]


@pytest.mark.parametrize(
    "workload",
    [
        mounting({"secret": {"secretName": "cloud-config"}}),
        mounting({"configMap": {"name": "certificates"}}, path="/etc/ssl"),
    ],
)
def test_a_ccm_that_reads_its_cloud_config_from_a_secret_passes(pack: PolicyHost, workload: AnalyzedResource) -> None:
    assert pack.analyze(workload) == []


# LoadBalancer Services depend on the CCM


def test_a_service_that_depends_on_the_ccm_passes(pack: PolicyHost) -> None:
    manager = ccm()

    assert pack.analyze_stack([manager, service(dependencies=(manager.urn,))]) == []


def test_a_service_without_a_dependency_on_the_ccm_is_refused(pack: PolicyHost) -> None:
    web = service()

    [finding] = pack.analyze_stack([ccm(), web])

    assert (finding.policy, finding.level, finding.urn) == (ORDER, "mandatory", web.urn)
    assert "kube-system/web" in finding.message
    assert "kube-system/ccm" in finding.message


def test_dependencies_count_through_properties_parents_and_other_resources(pack: PolicyHost) -> None:
    manager = ccm()
    controller = resource("pulumi-python:dynamic/cloudcontroller:CloudController", {}, dependencies=(manager.urn,))
    parent = component("parent", dependencies=(controller.urn,))
    by_parent = service("a", parent=parent.urn)
    by_property = service("b", property_dependencies={"metadata": [controller.urn]})

    assert pack.analyze_stack([manager, controller, parent, by_parent, by_property]) == []


def test_a_common_parent_is_no_dependency(pack: PolicyHost) -> None:
    parent = component("parent")
    manager = ccm()
    inside = resource(manager.type, manager.properties, "ccm", parent=parent.urn)

    assert of(pack.analyze_stack([parent, inside, service(parent=parent.urn)]), ORDER) == ["mandatory"]


def test_a_ccm_of_another_cluster_does_not_count(pack: PolicyHost) -> None:
    here, there = (
        AnalyzedProvider("pulumi:providers:kubernetes", f"urn:pulumi:dev::sample::p::{name}", name)
        for name in ("here", "there")
    )
    manager, other = ccm(), ccm(name="other")
    ours = resource(manager.type, manager.properties, "ours", provider=here)
    theirs = resource(other.type, other.properties, "theirs", provider=there)

    findings = pack.analyze_stack([ours, theirs, service(provider=here, dependencies=(theirs.urn,))])

    assert of(findings, ORDER) == ["mandatory"]


def test_a_stack_without_a_ccm_is_none_of_the_rules_business(pack: PolicyHost) -> None:
    assert pack.analyze_stack([service()]) == []


@pytest.mark.parametrize(
    "other",
    [
        service(type="ClusterIP"),
        service(spec={"loadBalancerClass": "service.k8s.aws/nlb"}),
        service("exempt"),
    ],
)
def test_services_that_no_ccm_serves_and_exempt_ones_are_left_alone(pack: PolicyHost, other: AnalyzedResource) -> None:
    assert pack.analyze_stack([ccm(), other]) == []


def test_a_service_of_a_class_that_the_ccm_serves_is_held_to_the_rule(pack: PolicyHost) -> None:
    ours = service(spec={"loadBalancerClass": "mycloud.io/ours"})

    assert of(pack.analyze_stack([ccm(), ours]), ORDER) == ["mandatory"]


def test_a_service_of_unknown_type_is_not_evaluated_but_the_others_are(pack: PolicyHost) -> None:
    findings = pack.analyze_stack([ccm(), service("a", type=UNKNOWN), service("b")])

    assert sorted(of(findings, ORDER)) == ["mandatory", "not-evaluated"]


def test_a_workload_of_unknown_image_may_be_the_ccm_and_so_nothing_is_said(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([ccm(image=UNKNOWN), service()]), ORDER) == ["not-evaluated"]


def test_the_page_on_policies_has_every_rule_with_its_level_and_severity() -> None:
    page = (PACK.parent / "docs" / "policies.md").read_text()

    for policy in POLICIES:
        [row] = [line for line in page.splitlines() if line.startswith(f"| `{policy.name}`")]
        level, severity = policy.enforcement_level, policy.severity
        assert level is not None
        assert severity is not None
        assert f"| {level.value} | {severity.value} |" in row


def test_every_rule_says_why_what_to_do_and_where_it_comes_from() -> None:
    for policy in POLICIES:
        assert len(policy.description) > 80
        assert policy.remediation_steps
        assert policy.url
        assert policy.framework is not None
        assert policy.config_schema is not None
        assert "exempt" in policy.config_schema.properties

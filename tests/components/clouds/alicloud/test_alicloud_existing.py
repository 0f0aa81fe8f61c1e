"""A cluster on Alibaba Cloud that is there already: the CCM, its role and its cloud config, and nothing else."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cloud_controller.clouds.alicloud.config import parse as parsed_cloud_config
from cloud_controller.clouds.alicloud.permissions import actions, statements
from components.clouds.alicloud.access import cloud_config
from components.stack_config import ConfigError, parse
from tests.components.clouds.alicloud.test_alicloud_program import (
    ATTACHMENT,
    DAEMON_SET,
    DEPLOYMENT,
    ISSUER,
    MADE,
    MANAGER,
    POLICY,
    PROVIDER_ARN,
    ROLE,
)
from tests.components.stack_runs import every, program

GUARD = "pulumi-python:dynamic/cloudcontroller:DestroyGuard"
KUBECONFIG = yaml.safe_dump({"clusters": [{"name": "c"}], "contexts": [{"name": "c"}], "users": [{"name": "u"}]})
IDENTITY = {"oidcProvider": PROVIDER_ARN, "oidcIssuer": ISSUER}


def existing(executors: dict[str, str] | None = None, **section: Any) -> dict[str, Any]:
    given = {
        "region": "cn-hangzhou",
        "kubernetesVersion": "1.34.1-aliyun.1",
        "ccmImage": "registry.example/ccm:1",
        **section,
    }
    return {
        "cloud": "alicloud",
        "cluster": "existing",
        "clusterName": "shop",
        "existing": {"clusterId": "c0123", "networkId": "vpc-1", "podCidr": "10.0.0.0/16"},
        "kubeconfig": KUBECONFIG,
        "nodePools": [],
        "executors": {"service": "daemon"} if executors is None else executors,
        "workloads": False,
        "alicloud": given,
    }


def of_alicloud(recording: Any) -> set[str]:
    types = (each.request.type for each in recording.registrations)
    return {type_ for type_ in types if type_.startswith("alicloud:")}


def test_an_existing_cluster_of_ack_gets_a_role_of_the_ccm_and_nothing_else(run_program: Any) -> None:
    recording = run_program(program, existing(existing=IDENTITY), MADE)

    full = f"shop-{MANAGER}"
    assert of_alicloud(recording) == {ROLE, POLICY, ATTACHMENT}
    [trust] = json.loads(recording.one(ROLE, full).inputs["assumeRolePolicyDocument"])["Statement"]
    assert trust["Principal"] == {"Federated": [PROVIDER_ARN]}
    assert trust["Condition"]["StringEquals"]["oidc:iss"] == ISSUER
    granted = json.loads(recording.one(POLICY, full).inputs["policyDocument"])["Statement"]
    assert sorted(action for statement in granted for action in statement["Action"]) == actions(["service"])
    [container] = recording.one(DEPLOYMENT, MANAGER).inputs["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert environment["ALIBABA_CLOUD_OIDC_PROVIDER_ARN"] == PROVIDER_ARN
    assert environment["ALIBABA_CLOUD_ROLE_ARN"] == MADE[ROLE]["arn"]


@pytest.mark.parametrize(
    ("control_plane", "kind", "account"), [("ack", DEPLOYMENT, "cloud-controller"), ("ecs", DAEMON_SET, MANAGER)]
)
def test_the_role_trusts_the_account_that_the_ccm_has(
    run_program: Any, control_plane: str, kind: str, account: str
) -> None:
    version = "1.34.1-aliyun.1" if control_plane == "ack" else "1.36"
    given = existing(controlPlane=control_plane, kubernetesVersion=version, existing=IDENTITY)
    if control_plane == "ecs":
        given["existing"] = {**given["existing"], "controlPlaneNodes": 3}
        given["executors"] = {}

    recording = run_program(program, given, MADE)

    [trust] = json.loads(recording.one(ROLE, f"shop-{MANAGER}").inputs["assumeRolePolicyDocument"])["Statement"]
    pod = recording.one(kind, MANAGER).inputs["spec"]["template"]["spec"]
    assert trust["Condition"]["StringEquals"]["oidc:sub"] == f"system:serviceaccount:kube-system:{account}"
    assert pod["serviceAccountName"] == account


def test_doctor_reads_an_existing_cluster_with_a_role_of_its_own(run_program: Any) -> None:
    recording = run_program(program, existing(existing=IDENTITY) | {"doctorSchedule": "0 * * * *"}, MADE)

    full, account = "shop-cloud-controller-doctor", "cloud-controller-doctor"
    [trust] = json.loads(recording.one(ROLE, full).inputs["assumeRolePolicyDocument"])["Statement"]
    assert trust["Condition"]["StringEquals"]["oidc:sub"] == f"system:serviceaccount:kube-system:{account}"
    granted = json.loads(recording.one(POLICY, full).inputs["policyDocument"])["Statement"]
    assert granted == statements("cn-hangzhou", ["service"], reads=True)
    [job] = [each for each in recording.registrations if each.request.type == "kubernetes:batch/v1:CronJob"]
    pod = job.inputs["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    environment = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    assert pod["serviceAccountName"] == account
    assert environment["ALIBABA_CLOUD_ROLE_ARN"] == MADE[ROLE]["arn"]
    assert environment["ALIBABA_CLOUD_OIDC_PROVIDER_ARN"] == PROVIDER_ARN


def test_without_an_oidc_provider_the_ccm_has_the_role_of_its_machine(run_program: Any) -> None:
    assert of_alicloud(run_program(program, existing(), MADE)) == set()


def test_a_destroy_leaves_services_without_a_class_to_acks_own_ccm(run_program: Any) -> None:
    of_one_s_own = existing({}, controlPlane="ecs", kubernetesVersion="1.36")
    of_one_s_own["existing"] = {**of_one_s_own["existing"], "controlPlaneNodes": 3}

    guards = [
        run_program(program, given, MADE).one(GUARD, "destroy-guard").inputs
        for given in (existing(), existing({}), of_one_s_own)
    ]

    assert [guard.get("without_class") for guard in guards] == [False, False, None]


def test_where_ack_runs_everything_an_existing_cluster_gets_no_ccm(run_program: Any) -> None:
    assert every(run_program(program, existing({}), MADE), DEPLOYMENT) == {}


def test_vswitch_and_route_tables_reach_the_cloud_config_of_ccm_and_previews(run_program: Any) -> None:
    named = {"vswitchId": "vsw-1", "routeTableIds": ["vtb-1", "vtb-2"]}
    given = existing({}, controlPlane="ecs", kubernetesVersion="1.36", existing=named)
    recording = run_program(program, given, MADE)
    secret = recording.one("kubernetes:core/v1:Secret", f"{MANAGER}-config").inputs["stringData"]

    of_ccm = parsed_cloud_config(secret.get("value", secret)["cloud.conf"])
    settings: Any = SimpleNamespace(get={"alicloud": json.dumps(given["alicloud"])}.get)
    of_preview = parsed_cloud_config(cloud_config(settings, "c0123", "vpc-1"))

    assert (of_ccm.vswitch_id, of_ccm.route_table_ids) == ("vsw-1", ("vtb-1", "vtb-2"))
    assert (of_ccm.cluster_id, of_ccm.vpc_id, of_ccm.serve_nlb_class) == ("c0123", "vpc-1", True)
    assert (of_preview.vswitch_id, of_preview.route_table_ids) == (of_ccm.vswitch_id, of_ccm.route_table_ids)


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ({"existing": {"oidcProvider": "x", "oidcIssuer": ISSUER}}, "allowed: acs:ram::ACCOUNT:oidc-provider/NAME"),
        ({"existing": {"oidcProvider": PROVIDER_ARN}}, "alicloud.existing.oidcIssuer is null: must be set together"),
        ({"existing": {"vswitchId": "subnet-1"}}, "allowed: vsw-…"),
        ({"vpcCidr": "10.0.0.0/16"}, "alicloud.vpcCidr is only for `cluster: new`"),
    ],
)
def test_a_mistake_about_an_existing_cluster_is_one_line_that_says_what_is_allowed(section: Any, line: str) -> None:
    given = {key: value if isinstance(value, str) else json.dumps(value) for key, value in existing(**section).items()}

    with pytest.raises(ConfigError) as caught:
        parse(given, secrets=["kubeconfig"])

    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_source_ranges_are_refused_for_the_clbs_of_an_existing_cluster() -> None:
    values = {**existing(), "sourceRanges": ["10.0.0.0/8"]}
    given = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}

    with pytest.raises(ConfigError, match=r"sourceRanges is .*: a CLB does not limit its clients by them"):
        parse(given, secrets=["kubeconfig"])


def test_the_cloud_config_of_a_simulated_account_leads_every_api_to_its_stand_in() -> None:
    section = {"region": "cn-hangzhou", "controlPlane": "ecs", "endpoint": "http://127.16.0.1:7070"}

    found = parsed_cloud_config(cloud_config({"alicloud": json.dumps(section)}, "c-1", "vpc-1"))  # type: ignore[arg-type]

    assert {*found.endpoints} == {"ecs", "metadata", "nlb", "quotas", "slb", "sts", "vpc"}
    assert {*found.endpoints.values()} == {"http://127.16.0.1:7070"}
    assert found.access_key is None

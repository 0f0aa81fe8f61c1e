"""Good programs that rules report, or did: no rule refuses one, not even in production."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from cloud_controller.pod_network import policy as network_policy
from cloud_stacks.policies.host import AnalyzedProvider, AnalyzedResource, PolicyHost
from tests.policy.production import ROOT
from tests.policy.services import EKS
from tests.policy_objects import ccm, resource, service, start

pytestmark = pytest.mark.integration

MAPS = {
    "nsswitch": {"nsswitch.conf": "passwd: files systemd\ngroup: files\n"},
    "SQL": {"schema.sql": "CREATE TABLE users (\n  name text,\n  password: varchar(255) NOT NULL\n);\n"},
    "GraphQL": {"schema.graphql": "input Login {\n  password: String!\n  token: ID!\n}\n"},
    "JavaScript": {"app.js": "const login = {\n  token: req.query.token,\n  password: form.elements.password,\n}\n"},
    "Lua": {"a.lua": "local config = {\n  password = ngx.var.secret_value,\n}\n"},
    "README": {"README.md": "Token: see the page of the team\nPassword: ask the operator on call\n"},
    "placeholder in brackets": {"p.yml": "ssl.keystore.password: ((keystore-password))\n"},
    "placeholder in underscores": {"a.conf": "password = __PASSWORD__\n"},
    "placeholder in braces": {"a.conf": "password = {password}\n"},
    "Spring's cipher": {"a.properties": "spring.datasource.password={cipher}AQA6Eg4pXn0fTz7rV1mC\n"},
    "hash of cloud-init": {"user-data": "users:\n- name: a\n  passwd: $6$rounds=4096$salt$0aB1cD2eF3gH\n"},
    "a model's settings": {"llm.yaml": 'max_tokens: 4096\nstop_token: "[/INST]"\n'},
    "names of cookies": {"a.yaml": "auth_token: shop_auth\nsession_token: shop_session\ncsrf_token: shop_csrf\n"},
    "CUE": {"a.cue": "password: string & strings.MinRunes(12)\n"},
    "columns": {"mapping.json": '{"password": "user_password_column", "api_token": "user_api_token_column"}'},
}
ROLES = ("volume-scheduler", "node-problem-detector", "persistent-volume-provisioner")
GROUP = "aws:ec2/securityGroup:SecurityGroup"
LABELS = {"k8s-app": "ccm"}


def config_map(data: dict[str, str]) -> AnalyzedResource:
    return resource("kubernetes:core/v1:ConfigMap", {"metadata": {"name": "a"}, "data": data})


def deployment(name: str, account: str = "default", **container: Any) -> AnalyzedResource:
    pod = {
        "serviceAccountName": account,
        "containers": [{"name": name, "image": "example.com/app:1.2.3", **container}],
    }
    spec = {"template": {"metadata": {"labels": {"app": name}}, "spec": pod}}
    return resource("kubernetes:apps/v1:Deployment", {"metadata": {"name": name, "namespace": "web"}, "spec": spec})


def bound(role: str) -> AnalyzedResource:
    props = {
        "metadata": {"name": "second"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"system:{role}"},
        "subjects": [{"kind": "ServiceAccount", "name": "second", "namespace": "kube-system"}],
    }
    return resource("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding", props)


def by_provider(made: AnalyzedResource, name: str) -> AnalyzedResource:
    kind = "pulumi:providers:kubernetes"
    return replace(made, provider=AnalyzedProvider(kind, f"urn:pulumi:dev::sample::{kind}::{name}", name, {}))


def manager() -> AnalyzedResource:
    made = ccm()
    template = {**made.properties["spec"]["template"], "metadata": {"labels": LABELS}}
    return replace(made, properties={**made.properties, "spec": {"template": template}})


def limiting() -> AnalyzedResource:
    props = {"metadata": {"name": "ccm", "namespace": "kube-system"}, "spec": network_policy(LABELS, [10258], ())}
    return resource("kubernetes:networking.k8s.io/v1:NetworkPolicy", props)


def machines() -> list[AnalyzedResource]:
    limited = [{"protocol": "tcp", "fromPort": 443, "toPort": 443, "cidrBlocks": ["10.0.0.0/8"]}]
    made_of = {"networkInterfaces": (f"urn:pulumi:dev::sample::{GROUP}::g",)}
    props = {"networkInterfaces": [{"securityGroups": ["sg-1"]}], "metadataOptions": {"httpTokens": "required"}}
    template = resource("aws:ec2/launchTemplate:LaunchTemplate", props, "t", property_dependencies=made_of)
    return [ccm(hostNetwork=True), template, resource(GROUP, {"egress": limited}, "g")]


def command(text: str) -> AnalyzedResource:
    return resource("command:local:Command", {"create": text})


def ranged(*ranges: str) -> AnalyzedResource:
    return service(spec={"loadBalancerSourceRanges": [*ranges]})


STORE = resource("aws:cloudtrail/eventDataStore:EventDataStore", {"organizationEnabled": True})
PROGRAMS = {
    **{f"ConfigMap of {name}": [config_map(data)] for name, data in MAPS.items()},
    **{f"binding of {role}": [bound(role)] for role in ROLES},
    "script that reads": [deployment("app", command=["sh", "-c", "PASSWORD=$(cat /run/secrets/p); exec app"])],
    "flag with a Secret's name": [deployment("app", args=["--secret=kube-system/app-Token-x7Q"])],
    "name of a key": [deployment("app", env=[{"name": "SECRET_KEY", "value": "database-password"}])],
    "web application called ccm": [deployment("ccm")],
    "exporter of metrics": [deployment("exporter", account="cloud-controller-manager")],
    "policy by a second provider": [by_provider(manager(), "one"), by_provider(limiting(), "two")],
    "groups of network interfaces": machines(),
    "two /8 of one company": [ranged("16.0.0.0/8", "17.0.0.0/8")],
    "private range of IPv6": [ranged("fd00::/8")],
    "event data store": [resource(EKS, {}, "cluster"), STORE],
    "kubectl config": [command("kubectl config set-context here --namespace web")],
    "kubectl wait": [command("kubectl wait --for=condition=Ready pods --all; npm run test")],
    "empty group": [resource("kubernetes:yaml/v2:ConfigGroup", {"objs": []})],
}
"""One that no rule reports any longer stays here."""


@pytest.fixture(scope="module")
def production() -> Iterator[PolicyHost]:
    host = start(json.loads((ROOT / "stacks" / "policies.alicloud-prod.json").read_text()))
    yield host
    host.close()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_good_program_is_not_refused(production: PolicyHost, program: str) -> None:
    made = PROGRAMS[program]

    found = [finding for each in made for finding in production.analyze(each)]
    found += production.analyze_stack(made)

    refused = [finding.policy for finding in found if "mandatory" in (finding.level, finding.rule_level)]
    assert refused == []

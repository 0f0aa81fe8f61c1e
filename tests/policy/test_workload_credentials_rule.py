"""Rule `workload-avoid-credentials`; `test_credentials.py` shows what counts as a credential."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, Secret
from tests.policy_objects import CONTAINER, EXEMPT, ccm, of, resource, workload

RULE = "workload-avoid-credentials"
HUSH = "hUsh4Ever"
PASSWORD = {"name": "DB_PASSWORD", "value": HUSH}


def running(*args: Any, command: Any = (), name: str = "ccm") -> AnalyzedResource:
    return ccm(container={"args": ["run", *args], "command": [*command]}, name=name)


def variables(*env: Any) -> AnalyzedResource:
    return ccm(container={"env": [*env]})


def pod_of(kind: str, spec: Any) -> AnalyzedResource:
    return resource(f"kubernetes:{kind}", {"metadata": {"name": "x"}, **spec})


POD = {"containers": [{"name": "web", "image": "web:1.0.0", "env": [PASSWORD]}]}
TEMPLATE = {"template": {"spec": POD}}


@pytest.mark.parametrize(
    ("object", "names"),
    [
        (variables(PASSWORD), "env: credentials in clear (DB_PASSWORD)"),
        (variables({"name": "DB", "value": f"postgres://a:{HUSH}@db/a"}), "(DB: a URL with a password)"),
        (variables({"name": "PASSWORD", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}),
         "(PASSWORD, from a ConfigMap)"),
        (variables({"name": "PASSWORD", "value": Secret(HUSH)}), "(PASSWORD)"),
        (running(f"--access-key={HUSH}"), "command and args: credentials in clear (--access-key)"),
        (running("--password", HUSH), "(--password)"),
        (running("--password", Secret(HUSH)), "(--password)"),
        (running(command=["sh", "-c", f"AWS_SECRET_ACCESS_KEY='{HUSH}' exec ccm --token \"{HUSH}\""]),
         "(AWS_SECRET_ACCESS_KEY, --token)"),
        (running(command=["sh", "-c", f"echo 'it's; ccm --token={HUSH}"]), "(--token)"),
        (ccm(initContainers=[{"name": "setup", "env": [PASSWORD]}]), "container setup: env"),
        (workload(TEMPLATE, "Deployment"), "container web: env"),
        (pod_of("core/v1:Pod", {"spec": POD}), "container web: env"),
        (pod_of("apps/v1:ReplicaSet", {"spec": TEMPLATE}), "container web: env"),
        (pod_of("batch/v1:Job", {"spec": TEMPLATE}), "container web: env"),
        (pod_of("batch/v1:CronJob", {"spec": {"jobTemplate": {"spec": TEMPLATE}}}), "container web: env"),
        (pod_of("apps/v1:DeploymentPatch", {"spec": TEMPLATE}), "container web: env"),
        (pod_of("apps/v1:DaemonSetList", {"items": [{"spec": TEMPLATE}]}), "container web: env"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_credential_in_a_pods_spec_is_refused_and_its_value_not_shown(
    pack: PolicyHost, object: AnalyzedResource, names: str
) -> None:
    [finding] = [each for each in pack.analyze(object) if each.policy == RULE]

    assert (finding.level, finding.severity) == ("advisory", "high")
    assert names in finding.message
    assert HUSH not in f"{finding}"


@pytest.mark.parametrize(
    "object",
    [
        variables({"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "a", "key": "password"}}}),
        variables({"name": "PASSWORD", "value": "$(OTHER)"}, {"name": "TOKEN_FILE", "value": "/run/token"}),
        variables({"name": "REGION", "value": UNKNOWN}, {"name": "TOKEN", "value": ""}),
        running("--token-file=/run/token", "--password", "--verbose", f"--name={HUSH}"),
        running(UNKNOWN, "--leader-elect=true"),
        running(command=["sh", "-c", 'exec ccm --token "$TOKEN" --password="$(cat /run/password)"']),
        running(f"--token={HUSH}", name=EXEMPT),
        resource("kubernetes:example.com/v1:Database", {"spec": TEMPLATE}),
    ],
    ids=["secretKeyRef", "references", "unknown region", "flags", "unknown word", "shell", "exempt", "other kinds"],
)
def test_references_and_what_is_no_credential_pass(pack: PolicyHost, object: AnalyzedResource) -> None:
    assert of(pack.analyze(object), RULE) == []


@pytest.mark.parametrize(
    "object",
    [
        variables({"name": "PASSWORD", "value": UNKNOWN}),
        variables({"name": UNKNOWN, "value": HUSH}),
        ccm(containers=UNKNOWN),
    ],
    ids=["value", "name", "containers"],
)
def test_an_unknown_variable_that_may_be_a_credential_is_not_evaluated(
    pack: PolicyHost, object: AnalyzedResource
) -> None:
    assert of(pack.analyze(object), RULE) == ["not-evaluated"]


def test_a_known_credential_is_reported_beside_an_unknown_container(pack: PolicyHost) -> None:
    beside = ccm(containers=[UNKNOWN, {**CONTAINER, "env": [{"name": "TOKEN", "value": UNKNOWN}, PASSWORD]}])

    assert of(pack.analyze(beside), RULE) == ["advisory", "not-evaluated"]

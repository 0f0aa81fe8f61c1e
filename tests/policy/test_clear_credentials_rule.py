"""Rule `object-avoid-credentials`; `test_credentials.py` shows what counts as a credential."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, PropertyMap, Secret
from tests.policy_objects import EXEMPT, of, resource, service

RULE = "object-avoid-credentials"
HUSH = "hUsh4Ever"
INI = f"[Global]\nendpoint = http://127.16.0.1:7070\ntoken = {HUSH}\ncluster-id = c-1\n"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
COPY = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": {"cloud.conf": INI}})


def made(kind: str, fields: PropertyMap, name: str = "settings", annotations: Any = None) -> AnalyzedResource:
    metadata = {"name": name, "namespace": "kube-system", **({"annotations": annotations} if annotations else {})}
    return resource(f"kubernetes:core/v1:{kind}", {"metadata": metadata, **fields}, name)


def config_map(data: Any, name: str = "settings") -> AnalyzedResource:
    return made("ConfigMap", {"data": data}, name)


@pytest.mark.parametrize(
    ("object", "said"),
    [
        (config_map({"cloud.conf": INI}), "data[cloud.conf] holds credentials in clear (token)"),
        (config_map({"AWS_SECRET_ACCESS_KEY": HUSH}), "data[AWS_SECRET_ACCESS_KEY]"),
        (config_map({"password.txt": HUSH}), "data[password.txt] holds credentials in clear (password)"),
        (made("ConfigMap", {"binaryData": {"x": base64.b64encode(INI.encode()).decode()}}), "binaryData[x]"),
        (made("ConfigMap", {}, annotations={LAST_APPLIED: COPY}), f"annotation {LAST_APPLIED} holds"),
        (service(annotations={"example.com/api-key": HUSH}), "annotation example.com/api-key holds"),
        (made("Secret", {}, annotations={LAST_APPLIED: "{}"}), f"annotation {LAST_APPLIED} is a copy of the Secret"),
        (config_map(Secret({"cloud.conf": INI})), "data[cloud.conf]"),
        (resource("kubernetes:core/v1:ConfigMapPatch", {"data": {"cloud.conf": INI}}), "data[cloud.conf]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_credential_outside_of_secrets_is_refused(pack: PolicyHost, object: AnalyzedResource, said: str) -> None:
    [finding] = pack.analyze(object)

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "high")
    assert said in finding.message


def test_each_entry_with_a_credential_is_named_and_no_value_is_shown(pack: PolicyHost) -> None:
    [finding] = pack.analyze(config_map({"a": INI, "b": "x: 1", "secret": HUSH, "c": f"url: amqp://u:{HUSH}@mq\n"}))

    assert sorted(finding.message.split("; ")) == [
        "data[a] holds credentials in clear (token)",
        "data[c] holds credentials in clear (a URL with a password)",
        "data[secret] holds credentials in clear (secret)",
    ]
    assert HUSH not in f"{finding}"


@pytest.mark.parametrize(
    "object",
    [
        made("Secret", {"stringData": {"cloud.conf": INI}, "data": {"password": "aHVzaA=="}}),
        config_map({"cloud.conf": INI}, name=EXEMPT),
        service(annotations={"kubernetes.io/ingress.class": HUSH, "example.com/password-file": "/etc/password"}),
        made("ServiceAccount", {}, annotations={"eks.amazonaws.com/role-arn": UNKNOWN}),
        resource("aws:ssm/parameter:Parameter", {"name": "password", "value": HUSH}),
        made("ConfigMap", {"data": {}, "binaryData": {"x": "no base64 §"}}),
    ],
    ids=["Secrets", "exempt", "annotations", "an unknown annotation of no interest", "of a cloud", "not readable"],
)
def test_secrets_and_what_is_no_credential_pass(pack: PolicyHost, object: AnalyzedResource) -> None:
    assert of(pack.analyze(object), RULE) == []


@pytest.mark.parametrize("data", [UNKNOWN, {"cloud.conf": UNKNOWN}])
def test_an_unknown_config_map_is_not_evaluated(pack: PolicyHost, data: Any) -> None:
    assert of(pack.analyze(config_map(data)), RULE) == ["not-evaluated"]


def test_a_known_credential_is_reported_beside_an_unknown_entry(pack: PolicyHost) -> None:
    assert of(pack.analyze(config_map({"a": UNKNOWN, "cloud.conf": INI})), RULE) == ["advisory", "not-evaluated"]

"""Rule `ccm-cloud-config-use-secret`."""

from __future__ import annotations

from typing import Any

import pytest

from local.engine.policies.host import AnalyzedResource, PolicyHost
from local.engine.values import UNKNOWN, PropertyMap, Secret
from tests.policy_objects import EXEMPT, ccm, of, resource

RULE = "ccm-cloud-config-use-secret"
INI = "[Global]\nendpoint = http://127.16.0.1:7070\ntoken = hush\ncluster-id = c-1\n"
JSON = '{"Global": {"region": "cn-1", "accessKeyID": "id", "accessKeySecret": "hush"}}'
YAML = "auth:\n  tenant-id: t\n  clientSecret: hush\n"


def config_map(data: Any, name: str = "settings") -> AnalyzedResource:
    return resource(
        "kubernetes:core/v1:ConfigMap", {"metadata": {"name": name, "namespace": "kube-system"}, "data": data}, name
    )


TWICE = "region: eu\nfirst: {token: hush}\nsecond: {token: ''}\n"


@pytest.mark.parametrize("text", [INI, JSON, YAML, TWICE])
def test_a_cloud_config_with_credentials_in_a_config_map_is_refused(pack: PolicyHost, text: str) -> None:
    [finding] = pack.analyze(config_map({"file": text}))

    assert (finding.policy, finding.level) == (RULE, "mandatory")
    assert "data[file]" in finding.message
    assert "hush" not in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "[Global]\nendpoint = http://127.16.0.1:7070\ntoken =\n",
        "password: none of a cloud\n",
        "just a text: [",
        "region: eu\npassword: ${PASSWORD}\ntoken: '{{ .token }}'\n",
        "token: x\nregion: eu\nsince: 2024-99-99\n",
        "token: " + "[" * 5000,
        "",
    ],
)
def test_other_texts_in_a_config_map_pass(pack: PolicyHost, text: str) -> None:
    assert pack.analyze(config_map({"settings.txt": text})) == []


def test_a_yaml_text_that_contains_itself_is_read_once(pack: PolicyHost) -> None:
    """YAML's anchors: endless where followed, and a few lines stand for millions."""
    endless = "region: eu\nall: &all\n  token: hush\n  again: *all\n"
    many = "region: eu\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40)).replace(
        "*a0", "token"
    )

    assert of(pack.analyze(config_map({"file": endless})), RULE) == ["mandatory"]
    assert pack.analyze(config_map({"file": many})) == []


def test_credentials_under_a_cloud_configs_file_name_are_refused(pack: PolicyHost) -> None:
    assert of(pack.analyze(config_map({"cloud.conf": "[a]\npassword = hush\n"})), RULE) == ["mandatory"]


def test_credentials_marked_as_secret_in_a_config_map_are_refused(pack: PolicyHost) -> None:
    assert of(pack.analyze(config_map(Secret({"cloud.conf": INI}))), RULE) == ["mandatory"]


def test_an_exempt_config_map_is_left_alone(pack: PolicyHost) -> None:
    assert pack.analyze(config_map({"cloud.conf": INI}, name=EXEMPT)) == []


@pytest.mark.parametrize("data", [UNKNOWN, {"cloud.conf": UNKNOWN}])
def test_an_unknown_config_map_is_not_evaluated(pack: PolicyHost, data: Any) -> None:
    assert of(pack.analyze(config_map(data)), RULE) == ["not-evaluated"]


def test_a_known_violation_counts_beside_an_unknown_value(pack: PolicyHost) -> None:
    assert of(pack.analyze(config_map({"a": UNKNOWN, "cloud.conf": INI})), RULE) == ["mandatory"]


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
    assert of(pack.analyze(workload), RULE) == ["mandatory"]


@pytest.mark.parametrize(
    "workload",
    [
        mounting({"secret": {"secretName": "cloud-config"}}),
        mounting({"projected": {"sources": [{"secret": {"name": "cloud"}}, {"configMap": {"name": "ca"}}]}}),
        mounting({"configMap": {"name": "certificates"}}, path="/etc/ssl"),
        mounting({"configMap": {"name": "certificates"}}, path="/", flag="--v=2"),
    ],
)
def test_a_ccm_that_reads_its_cloud_config_from_a_secret_passes(pack: PolicyHost, workload: AnalyzedResource) -> None:
    assert pack.analyze(workload) == []

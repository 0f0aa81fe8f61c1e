"""Rule `ccm-cloud-config-use-secret`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, PropertyMap
from tests.policy_objects import ccm, of

RULE = "ccm-cloud-config-use-secret"


def mounting(volume: PropertyMap, path: str = "/etc/cloud", flag: str = "--cloud-config=/etc/cloud/cloud.conf") -> Any:
    mounts = [{"name": "config", "mountPath": path}]
    return ccm(volumes=[{"name": "config", **volume}], container={"args": ["run", flag], "volumeMounts": mounts})


def projected(*sources: PropertyMap) -> PropertyMap:
    return {"projected": {"sources": [*sources]}}


def item(file: str) -> PropertyMap:
    return {"key": "any", "path": file}


@pytest.mark.parametrize(
    "workload",
    [
        mounting({"configMap": {"name": "settings"}}),
        mounting(projected({"configMap": {"name": "settings"}})),
        mounting({"configMap": {"name": "cloud-config"}}, path="/elsewhere"),
        mounting({"configMap": {"name": "settings"}}, path="/etc/cloud/cloud.conf"),
        mounting(projected({"secret": {"name": "ca", "items": [item("ca.crt")]}}, {"configMap": {"name": "settings"}})),
        mounting(
            projected({"secret": {"name": "ca"}}, {"configMap": {"name": "settings", "items": [item("cloud.conf")]}})
        ),
        mounting({"configMap": {"name": "settings"}}, flag="exec /ccm --cloud-config /etc/cloud/cloud.conf"),
    ],
)
def test_a_ccm_that_reads_its_cloud_config_from_a_config_map_is_refused(
    pack: PolicyHost, workload: AnalyzedResource
) -> None:
    assert of(pack.analyze(workload), RULE) == ["mandatory"]


@pytest.mark.parametrize("outermost_first", [True, False])
def test_of_volumes_within_each_other_the_innermost_has_the_file(pack: PolicyHost, outermost_first: bool) -> None:
    mounts = [{"name": "etc", "mountPath": "/etc"}, {"name": "config", "mountPath": "/etc/cloud"}]
    volumes = [{"name": "etc", "emptyDir": {}}, {"name": "config", "configMap": {"name": "settings"}}]
    container = {
        "args": ["run", "--cloud-config=/etc/cloud/cloud.conf"],
        "volumeMounts": mounts if outermost_first else mounts[::-1],
    }

    assert of(pack.analyze(ccm(volumes=volumes, container=container)), RULE) == ["mandatory"]


@pytest.mark.parametrize(
    "workload",
    [
        mounting({"secret": {"secretName": "cloud-config"}}),
        mounting(projected({"secret": {"name": "cloud"}}, {"configMap": {"name": "ca"}})),
        mounting(projected({"configMap": {"name": "ca", "items": [item("ca.crt")]}})),
        mounting({"configMap": {"name": "certificates"}}, path="/etc/ssl"),
        mounting({"configMap": {"name": "certificates"}}, path="/", flag="--v=2"),
    ],
)
def test_a_ccm_that_reads_its_cloud_config_from_a_secret_passes(pack: PolicyHost, workload: AnalyzedResource) -> None:
    assert pack.analyze(workload) == []


def test_an_unknown_volume_of_a_ccm_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze(mounting({"configMap": {"name": UNKNOWN}})), RULE) == ["not-evaluated"]

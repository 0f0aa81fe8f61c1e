"""Which provider manages a package, with and without a cloud, and the launchers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from local.aws.provider.provider import AwsProvider
from local.plugins.kubernetes.provider import KubernetesProvider
from local.plugins.launchers import installed, write_launchers, write_offline_launchers
from local.plugins.packages import factory_of, offline_factory_of
from local.plugins.provider import CreateRequest, DiffRequest
from local.plugins.recorder import Recorder, StandIn
from local.plugins.values import SIMULATED, UNKNOWN

LOCAL_AWS = {"region": "eu-central-1", "endpoints": '[{"ec2": "http://127.0.0.1:1"}]'}
NET = "urn:pulumi:dev::test::aws:ec2/vpc:Vpc::net"


def created(provider: Any, urn: str, inputs: dict[str, Any], *, preview: bool = True) -> Any:
    request = CreateRequest(urn=urn, inputs=inputs, preview=preview, timeout=0, report=lambda _: None)
    return provider.create(request)


@pytest.mark.parametrize(
    ("package", "config", "manager"),
    [
        ("kubernetes", {"kubeconfig": UNKNOWN}, KubernetesProvider),
        ("aws", LOCAL_AWS, AwsProvider),
        ("aws", {"region": "eu-central-1"}, Recorder),
        ("tls", {}, Recorder),
    ],
)
def test_a_package_is_managed_where_it_can_be_and_else_recorded(
    package: str, config: dict[str, Any], manager: type
) -> None:
    assert type(factory_of(package)(config)) is manager


@pytest.mark.parametrize(("package", "config"), [("kubernetes", {"kubeconfig": "/no/such/file"}), ("aws", LOCAL_AWS)])
def test_offline_neither_cloud_nor_cluster_is_asked(package: str, config: dict[str, Any]) -> None:
    assert isinstance(offline_factory_of(package, sys.executable)(config), Recorder)


def test_offline_a_preview_knows_what_an_update_will_record() -> None:
    provider = offline_factory_of("aws", sys.executable)({"region": "eu-central-1"})

    foreseen, made = (
        created(provider, NET, {"cidrBlock": "10.0.0.0/16"}, preview=preview) for preview in (True, False)
    )

    assert foreseen == made
    assert foreseen.id.startswith("vpc-") and foreseen.outputs["arn"].startswith("arn:aws:ec2:eu-central-1:")


def test_a_preview_with_a_cloud_does_not_know_what_it_would_answer() -> None:
    foreseen = created(factory_of("aws")({"region": "eu-central-1"}), NET, {"cidrBlock": "10.0.0.0/16"})

    assert foreseen.id == "" and foreseen.outputs == {"cidrBlock": "10.0.0.0/16", SIMULATED: True}


def test_offline_kubernetes_objects_are_checked_and_compared_by_their_own_provider() -> None:
    provider = offline_factory_of("kubernetes", sys.executable)({})
    urn = "urn:pulumi:dev::test::kubernetes:core/v1:ConfigMap::m"
    named = {"metadata": {"name": "m", "namespace": "n"}}

    checked = provider.check(urn, {}, named)
    difference = provider.diff(
        DiffRequest(
            urn=urn,
            id="n/m",
            old_inputs=checked.inputs | {"data": {"a": "1"}},
            old_outputs={SIMULATED: True},
            news=checked.inputs | {"data": {"a": "2"}},
            ignore_changes=(),
        )
    )

    assert isinstance(provider, StandIn)
    assert checked.inputs == {"apiVersion": "v1", "kind": "ConfigMap", **named}
    assert difference.replaces == ("data.a",) and created(provider, urn, named).id == "n/m"


@pytest.mark.integration
def test_launchers_are_found_by_the_version_of_the_sdk(tmp_path: Path) -> None:
    versions = installed()

    write_launchers(tmp_path, {name: versions[name] for name in ("aws", "tls")})

    found = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("pulumi-resource-*")}
    names = {name: f"plugins/resource-{name}-v{versions[name]}/pulumi-resource-{name}" for name in ("aws", "tls")}
    assert found.keys() == {*names.values()} and "policy" not in versions
    assert found[names["tls"]] == f'#!/bin/sh\nexec {sys.executable} -I -m local.plugins tls "$@"\n'
    assert all(os.access(tmp_path / name, os.X_OK) for name in names.values())


def test_offline_dynamic_resources_have_a_launcher_for_path(tmp_path: Path) -> None:
    first = write_offline_launchers(tmp_path, {"tls": "1.0.0"}, "/its/python")

    launcher = (first / "pulumi-resource-pulumi-python").read_text()
    assert launcher.endswith(' pulumi-python --offline /its/python "$@"\n')
    assert "--offline" in (tmp_path / "plugins" / "resource-tls-v1.0.0" / "pulumi-resource-tls").read_text()

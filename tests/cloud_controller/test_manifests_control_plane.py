"""The manifests against the schema of a real API server, by server-side dry run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cloud_controller.cli import commands as cli
from cloud_controller.kube import ApiError, Kube, Object, PatchType, name, namespace

pytestmark = pytest.mark.control_plane

CONFIGS = {
    "alicloud": '{"Global": {"clusterID": "c-0123456789", "region": "cn-hangzhou", "vpcid": "vpc-1"}}',
    "aws": "[Global]\nKubernetesClusterID = prod-1\nRegion = eu-central-1\n",
    "mycloud": "[Global]\nendpoint = http://127.0.0.1:1\ntoken = a-token\ncluster-id = c-0123456789ab\n",
}


def dry_run(kube: Kube, obj: Object) -> Object:
    """Server-side apply: unlike other writes, it refuses a field that the schema does not have."""
    resource = kube.resource(obj["apiVersion"], obj["kind"])
    return kube.patch(
        resource, name(obj), obj, namespace(obj), type=PatchType.APPLY, field_manager="test", dry_run=True
    )


@pytest.fixture
def manifests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """What the command prints, with the Secret."""

    def made(cloud: str, *more: str) -> list[Object]:
        (tmp_path / "cloud.conf").write_text(CONFIGS[cloud])
        given = [f"--cloud={cloud}", "--image=registry.example/ccm:1.0.0", "--cluster-cidr=10.20.0.0/16"]
        assert cli.main(["manifests", *given, f"--with-cloud-config={tmp_path}/cloud.conf", *more]) == 0
        return list(yaml.safe_load_all(capsys.readouterr().out))

    return made


@pytest.mark.parametrize(
    ("cloud", "more"),
    [
        ("mycloud", ["--control-plane-machines=1"]),
        ("mycloud", ["--control-plane-machines=3", "--env=LEVEL=1e3"]),
        ("mycloud", ["--readiness-gates=inject"]),
        ("alicloud", ["--service-admission=deny"]),
        ("aws", ["--control-plane-machines=0", "--role=arn:aws:iam::123456789012:role/ccm"]),
        ("alicloud", ["--control-plane-machines=0", "--role=acs:ram::1:role/ccm", "--controllers=service"]),
    ],
)
def test_the_api_server_accepts_every_object_as_it_is_written(
    cloud: str, more: list[str], manifests: Any, kube: Kube
) -> None:
    for obj in manifests(cloud, *more):
        stored = dry_run(kube, obj)

        assert written(obj) == common(written(obj), stored), obj["kind"]


def test_the_api_server_rejects_manifests_with_a_misspelt_field(manifests: Any, kube: Kube) -> None:
    (daemon_set,) = [each for each in manifests("mycloud") if each["kind"] == "DaemonSet"]
    daemon_set["spec"]["template"]["spec"]["hostNetwrok"] = True

    with pytest.raises(ApiError, match="hostNetwrok"):
        dry_run(kube, daemon_set)


def written(obj: Object) -> Object:
    """Without the one field that the server turns into another."""
    return {key: value for key, value in obj.items() if key != "stringData"}


def common(written: Any, stored: Any) -> Any:
    """Of what is stored, what was written: servers add defaults."""
    if isinstance(written, dict):
        return {key: common(value, stored.get(key)) for key, value in written.items()}
    if isinstance(written, list):
        return [common(a, b) for a, b in zip(written, stored, strict=True)]
    return stored

"""The component and `cloud-controller manifests` install the same objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cloud_controller.cli import commands as cli
from components.controller_manager import CloudControllerManager
from components.inputs import WrongInput
from tests.components.conftest import unwrap

CONFIGS = {
    "alicloud": '{"Global": {"clusterID": "c-0123456789", "region": "cn-hangzhou", "vpcid": "vpc-1"}}',
    "aws": "[Global]\nKubernetesClusterID = prod-1\nRegion = eu-central-1\n",
    "mycloud": "[Global]\nendpoint = http://127.0.0.1:1\ntoken = a-token\ncluster-id = c-0123456789ab\n",
}
ROLE = "arn:aws:iam::123456789012:role/ccm"
DOCTORS_ROLE = "arn:aws:iam::123456789012:role/doctor"
RAM_ROLE = "acs:ram::123456789012:role/ccm"


@pytest.mark.parametrize(
    ("cloud", "component", "command"),
    [
        ("mycloud", {"machines": 1}, []),
        ("mycloud", {"machines": 3, "arguments": ["--v=4"]}, ["--control-plane-machines=3", "--", "--v=4"]),
        (
            "mycloud",
            {"machines": 0, "doctor_schedule": "0 * * * *", "doctor_push_gateway": "http://gateway:9091"},
            [
                "--control-plane-machines=0",
                "--doctor-schedule=0 * * * *",
                "--doctor-push-gateway=http://gateway:9091",
            ],
        ),
        (
            "aws",
            {"machines": 0, "role": ROLE, "environment": {"AWS_REGION": "eu-central-1"}, "lease": "ours"},
            [
                "--control-plane-machines=0",
                f"--role={ROLE}",
                "--env=AWS_REGION=eu-central-1",
                "--leader-elect-resource-name=ours",
            ],
        ),
        (
            "aws",
            {
                "machines": 0,
                "role": ROLE,
                "doctor_schedule": "0 * * * *",
                "doctor_role": DOCTORS_ROLE,
                "environment": {"AWS_REGION": "eu-central-1"},
            },
            [
                "--control-plane-machines=0",
                f"--role={ROLE}",
                "--doctor-schedule=0 * * * *",
                f"--doctor-role={DOCTORS_ROLE}",
                "--env=AWS_REGION=eu-central-1",
            ],
        ),
        (
            "aws",
            {
                "machines": 0,
                "role": ROLE,
                "controllers": ["service"],
                "doctor_schedule": "0 * * * *",
                "doctor_role": DOCTORS_ROLE,
                "doctor_push_gateway": "http://gateway.monitoring:9091",
            },
            [
                "--control-plane-machines=0",
                f"--role={ROLE}",
                "--controllers=service",
                "--doctor-schedule=0 * * * *",
                f"--doctor-role={DOCTORS_ROLE}",
                "--doctor-push-gateway=http://gateway.monitoring:9091",
            ],
        ),
        (
            "alicloud",
            {"machines": 0, "role": RAM_ROLE, "controllers": ["service"], "readiness_gates": "by-hand"},
            [
                "--control-plane-machines=0",
                f"--role={RAM_ROLE}",
                "--controllers=service",
                "--readiness-gates=by-hand",
            ],
        ),
    ],
)
def test_the_command_prints_what_the_component_makes(
    cloud: str,
    component: dict[str, Any],
    command: list[str],
    tmp_path: Path,
    run_program: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    controllers = ["node", "node-lifecycle", "service", "route", *(["volume"] if cloud == "mycloud" else [])]
    given: Any = {
        "cloud": cloud,
        "image": "registry.example/ccm:1.0.0",
        "cluster_name": "shop",
        "cluster_cidr": "10.20.0.0/16",
        "cloud_config": CONFIGS[cloud],
        "controllers": controllers,
        **component,
    }
    (tmp_path / "cloud.conf").write_text(CONFIGS[cloud])
    options = [f"--cloud={cloud}", "--image=registry.example/ccm:1.0.0", "--cluster-name=shop"]
    options += ["--cluster-cidr=10.20.0.0/16", f"--with-cloud-config={tmp_path / 'cloud.conf'}"]

    recording = run_program(lambda: CloudControllerManager("m", given), outputs={})
    assert cli.main(["manifests", *options, *command]) == 0

    made = [unwrap(each.inputs) for each in recording.registrations if each.request.type.startswith("kubernetes:")]
    assert by_name(made) == by_name(yaml.safe_load_all(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("cloud", "given", "said"),
    [
        ("mycloud", {"doctor_schedule": "hourly"}, "doctor_schedule"),
        ("aws", {"doctor_schedule": "0 * * * *", "role": ROLE}, "the role trusts the CCM's ServiceAccount alone"),
        ("aws", {"doctor_schedule": "0 * * * *", "doctor_role": ROLE}, "must not be set without role"),
        ("aws", {"role": ROLE, "doctor_role": ROLE}, "must not be set without doctor_schedule"),
        ("mycloud", {"doctor_role": ROLE}, "does not support roles for pods"),
        ("aws", {"doctor_schedule": "0 * * * *", "vendor_version": "v1.36.1"}, "only this project's image"),
        ("mycloud", {"doctor_push_gateway": "http://gateway"}, "must not be set without doctor_schedule"),
        ("mycloud", {"doctor_schedule": "0 * * * *", "doctor_push_gateway": "http://gateway:port"}, "allowed: a URL"),
        (
            "mycloud",
            {"doctor_schedule": "0 * * * *", "doctor_push_gateway": "http://me:hush@gateway"},
            "doctor_push_gateway: is none; allowed: a URL without credentials",
        ),
    ],
)
def test_a_doctor_that_could_not_examine_the_ccm_is_refused(
    cloud: str, given: dict[str, Any], said: str, run_program: Any
) -> None:
    args: Any = {
        "cloud": cloud,
        "cluster_name": "shop",
        "cluster_cidr": "10.20.0.0/16",
        "cloud_config": CONFIGS[cloud],
        "controllers": ["node"],
        **given,
    }

    with pytest.raises(WrongInput, match=said):
        run_program(lambda: CloudControllerManager("m", args), outputs={})


def by_name(objects: Any) -> dict[tuple[str, str], Any]:
    found = list(objects)
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(by_name) == len(found)
    return by_name

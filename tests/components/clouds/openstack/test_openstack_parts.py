"""The parts of a cluster on OpenStack: the start of machines, credentials of the environment, the key manager."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloud_controller.cloud import InvalidConfiguration, NotFound
from components.clouds.openstack import access
from components.clouds.openstack.environment import credentials
from components.clouds.openstack.user_data import script
from tests.components.clouds.openstack.key_manager import KeyManager

GIVEN: dict[str, Any] = {
    "cluster": "it's",
    "labels": {"a": "b; rm -rf /"},
    "join": {
        "region": "",
        "kubernetes_version": "1.36",
        "endpoint": "10.0.3.9",
        "api_names": "203.0.113.7",
        "pod_cidr": "172.20.0.0/16",
        "service_cidr": "172.21.0.0/20",
        "certificate_authority": "Q0E=",
        "joiner": "A KUBECONFIG",
        "pki": json.dumps({"ca.key": "A KEY\n", "etcd/ca.crt": "A CERTIFICATE\n"}),
    },
}

# ------------------------------------------------------------------------------------------------ the start of machines


@pytest.mark.integration
@pytest.mark.parametrize("plane", [True, False])
def test_user_data_is_a_valid_bash_script(plane: bool) -> None:
    bash = shutil.which("bash")
    assert bash

    text = script("c-0", GIVEN, plane=plane, first=plane)

    checked = subprocess.run([bash, "-n"], input=text, capture_output=True, text=True, check=False, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "LABELS='a=b; rm -rf /'\n" in text  # a value is never code


PROGRAMS = {
    "cloud-init": "echo i-1",
    "curl": """answer=$(head -n 1 "$ANSWERS")
        echo "$answer" | tee -a "$OUT/asked"
        test "$(wc -l <"$ANSWERS")" = 1 || sed -i 1d "$ANSWERS"
        test "$answer" != 000""",
    "kubeadm": 'cp "$3" "$OUT/$1.yaml"; cp "$OUT/run/joiner.kubeconfig" "$OUT/joiner" 2>&- || true',
    "sleep": "true",
}
"""What stands in for the machine's programs: `curl` for an API server with these answers, the last again and again."""
SILENT = "000"


def started(folder: Path, *answers: str, plane: bool, first: bool) -> dict[str, Any]:
    """Run the parts of the script that are about the cluster on this machine; what kubeadm was given, by command."""
    programs, root = folder / "bin", folder / "etc"
    (root / "pki").mkdir(parents=True)
    programs.mkdir()
    (folder / "run").mkdir()
    for name, content in {**PROGRAMS, "systemctl": "true"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{content}\n")
        (programs / name).chmod(0o755)
    (folder / "answers").write_text("".join(f"{answer}\n" for answer in answers))
    text = script("c-0", GIVEN, plane=plane, first=first)
    # The system's preparation needs a machine of its own: only its functions are kept.
    facts, rest = text.split("# As kubeadm requires", 1)
    own = rest[rest.index("INSTANCE=") :]
    before, after = own.split("printf 'overlay", 1)
    kept = f"{facts}{before}umask 077\n{after.split('umask 077', 1)[1]}"
    kept = kept.replace("/etc/kubernetes", str(root)).replace("/run/", f"{folder}/run/")
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "OUT": str(folder),
        "ANSWERS": str(folder / "answers"),
    }
    subprocess.run(["bash"], input=kept, text=True, env=environment, check=True, timeout=60)
    return {path.stem: [*yaml.safe_load_all(path.read_text())] for path in folder.glob("*.yaml")}


@pytest.mark.integration
def test_the_first_machine_begins_a_cluster_of_the_programs_authorities(tmp_path: Path) -> None:
    given = started(tmp_path, SILENT, plane=True, first=True)

    assert list(given) == ["init"]
    machine, cluster = given["init"]
    assert machine["nodeRegistration"]["kubeletExtraArgs"][1] == {"name": "provider-id", "value": "openstack:///i-1"}
    assert cluster["controlPlaneEndpoint"] == "10.0.3.9:6443"
    assert cluster["apiServer"] == {"certSANs": ["203.0.113.7"]}
    assert (tmp_path / "etc/pki/etcd/ca.crt").read_text() == "A CERTIFICATE\n"
    assert (tmp_path / "etc/pki/ca.key").read_text() == "A KEY\n"
    assert (tmp_path / "etc/pki/ca.key").stat().st_mode & 0o077 == 0


@pytest.mark.integration
@pytest.mark.parametrize("answer", ["200", "401", "403", "500"])
def test_the_first_machine_joins_a_cluster_that_answers_anything_within_two_minutes(
    answer: str, tmp_path: Path
) -> None:
    given = started(tmp_path, *[SILENT] * 11, answer, "200", plane=True, first=True)

    assert list(given) == ["join"]
    assert given["join"][0]["controlPlane"] == {}


@pytest.mark.integration
@pytest.mark.parametrize("plane", [True, False])
def test_other_machines_wait_for_the_cluster_and_join_by_their_certificate(plane: bool, tmp_path: Path) -> None:
    given = started(tmp_path, *[SILENT] * 40, "403", "200", plane=plane, first=False)

    [join] = given["join"]
    kubeconfig = Path(join["discovery"]["file"]["kubeConfigPath"])
    assert join["nodeRegistration"]["name"] == "c-0"
    assert ("controlPlane" in join) == plane
    assert kubeconfig == tmp_path / "run/joiner.kubeconfig"
    assert (tmp_path / "joiner").read_text() == "A KUBECONFIG"
    assert not kubeconfig.exists()  # it can join any machine
    assert (tmp_path / "asked").read_text().split()[-2:] == ["403", "200"]
    if not plane:
        assert not (tmp_path / "etc/pki/ca.crt").exists()  # kubeadm refuses to join a worker that has one


@pytest.mark.integration
@pytest.mark.parametrize("refusal", ["401", "403"])
def test_machines_join_a_cluster_that_goes_on_refusing_strangers(refusal: str, tmp_path: Path) -> None:
    given = started(tmp_path, refusal, plane=False, first=False)

    assert list(given) == ["join"]
    assert len((tmp_path / "asked").read_text().split()) == 30  # kubeadm may be at work meanwhile


# -------------------------------------------------------------------------------------- credentials of the environment


def test_a_password_of_the_environment_is_used_with_its_project_and_domains() -> None:
    environment = {
        "OS_USERNAME": "ann",
        "OS_PASSWORD": "hush",
        "OS_PROJECT_NAME": "shop",
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_ID": "default",
        "OS_REGION_NAME": "elsewhere",  # the stack file says it
        "OS_CACERT": "/etc/company.pem",
    }

    assert credentials(environment) == {
        "username": "ann",
        "password": "hush",
        "tenant-name": "shop",
        "user-domain-name": "Default",
        "tenant-domain-id": "default",
        "ca-file": "/etc/company.pem",
    }


def test_a_cloud_of_the_environment_is_read_from_the_file_that_it_names(tmp_path: Path) -> None:
    file = tmp_path / "clouds.yaml"
    file.touch()

    found = credentials(
        {"OS_CLOUD": "shop", "OS_CLIENT_CONFIG_FILE": str(file), "OS_PASSWORD": "hush", "OS_CACERT": "/etc/company.pem"}
    )

    cloud = {"use-clouds": "true", "clouds-file": str(file), "cloud": "shop"}
    assert found == {**cloud, "ca-file": "/etc/company.pem"}


def test_an_environment_without_credentials_is_an_error_that_names_the_variables() -> None:
    with pytest.raises(InvalidConfiguration, match="OS_APPLICATION_CREDENTIAL_ID and _SECRET"):
        credentials({"OS_USERNAME": "ann"})


# -------------------------------------------------------------------------------------------------- the key manager


@pytest.fixture
def key_manager(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("OS_CLOUD", raising=False)
    monkeypatch.setenv("OS_APPLICATION_CREDENTIAL_ID", "id")
    monkeypatch.setenv("OS_APPLICATION_CREDENTIAL_SECRET", "hush")
    with KeyManager().serving() as running:
        yield running


def stack_config(url: str) -> Any:
    section = {"authUrl": f"{url}/v3", "externalNetworkId": "any", "caFile": "/only/in/the/daemons/container.pem"}
    return {"openstack": json.dumps(section)}


@pytest.mark.integration
def test_a_dynamic_provider_gets_the_newest_kubeconfig_from_the_key_manager(key_manager: KeyManager) -> None:
    key_manager.secrets = [("cloud-controller/c-1/kubeconfig", "new"), ("cloud-controller/c-1/kubeconfig", "old")]

    assert access.kubeconfig(stack_config(key_manager.url), "c-1") == "new"


@pytest.mark.integration
def test_a_cluster_without_a_kubeconfig_in_the_key_manager_is_gone(key_manager: KeyManager) -> None:
    key_manager.secrets = [("cloud-controller/other/kubeconfig", "theirs")]

    with pytest.raises(NotFound, match="no secret cloud-controller/c-1/kubeconfig"):
        access.kubeconfig(stack_config(key_manager.url), "c-1")

"""A control plane becomes ready, keeps its data, recovers from kills, and requires credentials."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urllib3

from cloud_controller.kube import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    CSI_NODES,
    ENDPOINT_SLICES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
    SERVICE_ACCOUNTS,
    VOLUME_ATTACHMENTS,
    ForbiddenError,
    Kube,
    Resource,
)
from local import processes
from local.control_plane.binaries import Binaries
from local.control_plane.components import (
    ALL_PORTS,
    API_SERVER,
    COMPONENTS,
    CONTROLLER_MANAGER,
    ETCD,
    ETCD_CLIENT_PORT,
)
from local.control_plane.control_plane import ControlPlane, ControlPlaneError
from local.ports import unused_address
from local.processes import Process
from tests.waiting import eventually

pytestmark = pytest.mark.control_plane
MakeControlPlane = Callable[[Path], ControlPlane]


def test_the_control_plane_is_ready_when_pods_can_be_created(running: ControlPlane) -> None:
    assert running.is_running()
    assert client(running).get(SERVICE_ACCOUNTS, "default", "default")["metadata"]["uid"]


def test_the_kubernetes_service_points_to_the_advertised_address_not_to_loopback(running: ControlPlane) -> None:
    endpoints = client(running).get(ENDPOINT_SLICES, "kubernetes", "default")["endpoints"]

    assert [endpoint["addresses"] for endpoint in endpoints] == [[f"10.{host_of(running).removeprefix('127.')}"]]


def test_everything_listens_on_the_control_planes_own_loopback_address(running: ControlPlane) -> None:
    assert IPv4Address(host_of(running)).is_loopback
    for port in (2379, 2380, 6443, 10257, 10259):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        socket.create_connection((host_of(running), port), timeout=5).close()


@pytest.mark.parametrize("path, status", [("/version", 401), ("/api/v1/nodes", 401), ("/readyz", 200), ("/livez", 200)])
def test_without_credentials_only_the_health_probes_answer(running: ControlPlane, path: str, status: int) -> None:
    assert get_anonymously(running, path) == status


def test_a_client_certificate_has_the_rights_that_rbac_grants_its_user_and_groups(running: ControlPlane) -> None:
    client(running).create(
        CLUSTER_ROLE_BINDINGS,
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "viewers"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "viewers"}],
        },
    )
    viewer, nobody = client(running, "eve", "viewers"), client(running, "eve", "strangers")

    # kube-controller-manager assembles the role `view`, and also makes the ConfigMap; and the API server learns of a
    # binding by a watch.
    eventually(lambda: can_list(viewer), "who is bound to the role may list")
    with pytest.raises(ForbiddenError):
        viewer.list(SECRETS, "default")
    with pytest.raises(ForbiddenError):
        nobody.list(CONFIG_MAPS, "default")


def test_a_node_may_not_give_itself_the_control_planes_label(running: ControlPlane) -> None:
    kubelet = client(running, "system:node:thrifty", "system:nodes")
    labels = {"node-role.kubernetes.io/control-plane": ""}

    with pytest.raises(ForbiddenError, match="node-role"):
        kubelet.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "thrifty", "labels": labels}})


@pytest.mark.parametrize(
    ("resource", "namespace"),
    [
        (SECRETS, "default"),
        (PERSISTENT_VOLUME_CLAIMS, "default"),
        (PERSISTENT_VOLUMES, None),
        (VOLUME_ATTACHMENTS, None),
        (CSI_NODES, None),
    ],
)
def test_a_node_may_not_read_what_none_of_its_pods_uses(
    running: ControlPlane, resource: Resource, namespace: str | None
) -> None:
    kubelet = client(running, "system:node:thrifty", "system:nodes")

    with pytest.raises(ForbiddenError):
        kubelet.get(resource, "of-others", namespace)


def test_a_cluster_certificate_does_not_open_etcd(running: ControlPlane) -> None:
    assert get_from_etcd(running, as_client="etcd-client") == 200

    with pytest.raises(urllib3.exceptions.HTTPError):
        get_from_etcd(running, as_client="admin")


def test_private_keys_are_readable_only_by_the_user(running: ControlPlane) -> None:
    secrets = [*running.directory.rglob("*.key"), *running.directory.glob("*.kubeconfig")]

    assert len(secrets) > 5
    assert {path.stat().st_mode & 0o077 for path in secrets} == {0}


def test_starting_a_running_control_plane_changes_nothing(running: ControlPlane) -> None:
    before = {name: process_of(running, name) for name in COMPONENTS}

    running.start()

    assert {name: process_of(running, name) for name in COMPONENTS} == before


@pytest.mark.parametrize("victims", [[API_SERVER], [ETCD], list(COMPONENTS)])
def test_start_restarts_killed_components(running: ControlPlane, victims: list[str]) -> None:
    kept = f"kept-without-{victims[0]}-{len(victims)}"
    client(running).create(CONFIG_MAPS, config_map(kept), "default")
    # All are found first: a controller manager that starts exits by itself once its API server is gone.
    for process in [process_of(running, victim) for victim in victims]:
        process.signal(signal.SIGKILL)
        assert process.wait(30)

    assert not running.is_running()
    running.start()
    running.wait_ready()

    assert running.is_running()
    assert client(running).get(CONFIG_MAPS, kept, "default")


def test_components_that_ended_without_the_api_server_are_restarted_with_it(binaries: Binaries, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    wrapper = tmp_path / "kube-apiserver"
    real = binaries.path(API_SERVER)
    wrapper.write_text(f'#!/bin/sh\n[ -f {victim} ] && kill -9 $(cat {victim})\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    control_plane = control_plane_with(Binaries({**binaries.paths, API_SERVER: wrapper}), tmp_path / "c")
    try:
        control_plane.start()
        control_plane.wait_ready()
        victim.write_text(str(process_of(control_plane, CONTROLLER_MANAGER).pid))
        api_server = process_of(control_plane, API_SERVER)
        api_server.signal(signal.SIGKILL)
        assert api_server.wait(30)

        control_plane.start()
        control_plane.wait_ready()

        assert control_plane.is_running()
    finally:
        control_plane.stop()


def test_concurrent_starts_start_the_control_plane_once(make_control_plane: MakeControlPlane, tmp_path: Path) -> None:
    control_plane = make_control_plane(tmp_path)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: control_plane.start(), range(2)))

    assert control_plane.is_running()
    assert len(processes.find_all(tmp_path / "processes")) == len(COMPONENTS)


def test_a_component_that_ends_at_once_is_named_with_its_log_and_the_others_are_stopped(
    binaries: Binaries, tmp_path: Path
) -> None:
    broken = tmp_path / "kube-apiserver"
    broken.write_text("#!/bin/sh\necho the flag is unknown >&2\nexit 1\n")
    broken.chmod(0o755)
    control_plane = control_plane_with(Binaries({**binaries.paths, API_SERVER: broken}), tmp_path / "c")

    with pytest.raises(ControlPlaneError, match=r"kube-apiserver ended while waiting[^$]*the flag is unknown"):
        control_plane.start()

    assert not processes.find_all(tmp_path / "c" / "processes")


def control_plane_with(binaries: Binaries, directory: Path) -> ControlPlane:
    return ControlPlane(directory, binaries, unused_address(ALL_PORTS), "10.1.0.0/16", "10.2.0.0/24", "test")


def client(control_plane: ControlPlane, user: str = "admin", *groups: str) -> Kube:
    """A client as this user; without groups, as a cluster admin."""
    text = control_plane.kubeconfig(user, groups or ("system:masters",), timedelta(hours=1))
    return Kube.from_kubeconfig(text)


def can_list(kube: Kube) -> bool:
    """Whether this user sees a ConfigMap of the default namespace."""
    try:
        return bool(kube.list(CONFIG_MAPS, "default").items)
    except ForbiddenError:
        return False


def host_of(control_plane: ControlPlane) -> str:
    host = urlsplit(control_plane.endpoint).hostname
    assert host is not None
    return host


def process_of(control_plane: ControlPlane, component: str) -> Process:
    process = processes.find(control_plane.directory / "processes" / f"{component}.json")
    assert process is not None, f"{component} does not run"
    return process


def get_anonymously(control_plane: ControlPlane, path: str) -> int:
    with urllib3.PoolManager(
        ca_certs=str(control_plane.directory / "pki" / "ca.crt"), retries=False, timeout=30
    ) as pool:
        return pool.request("GET", control_plane.endpoint + path).status


def get_from_etcd(control_plane: ControlPlane, as_client: str) -> int:
    pki = control_plane.directory / "pki"
    with urllib3.PoolManager(
        ca_certs=str(pki / "etcd-ca.crt"),
        cert_file=str(pki / f"{as_client}.crt"),
        key_file=str(pki / f"{as_client}.key"),
        retries=False,
        timeout=30,
    ) as pool:
        return pool.request("GET", f"https://{host_of(control_plane)}:{ETCD_CLIENT_PORT}/version").status


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}

"""The plan and the daemon serve a cloud of another distribution in a real cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from cloud_controller import clouds
from cloud_controller.cli.commands import main
from cloud_controller.daemon.manager import Manager
from cloud_controller.daemon.options import ManagerOptions
from cloud_controller.kube import NODES, SERVICES, Kube, Object
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from local.control_plane.control_plane import ControlPlane
from tests.control_planes import running_control_plane

pytestmark = pytest.mark.control_plane

CONFIG = "cluster: c-1\nmachines: {n1: 10.9.0.1}\n"
CONTROLLERS = ("node", "service")
NODE: Object = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "spec": {
        "taints": [
            {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"},
        ]
    },
}
SERVICE: Object = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default", "annotations": {"tiny.example.com/scheme": "internal"}},
    "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]},
}


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with running_control_plane(tmp_path_factory.mktemp("control-plane")) as running:
        yield running


def load_balancers() -> dict[str, ObservedLoadBalancer]:
    from tinycloud.api import ACCOUNT

    return ACCOUNT.load_balancers


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_node_is_planned_then_initialised_and_a_service_gets_its_address(
    control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = control_plane.kubeconfig("admin", ["system:masters"], timedelta(hours=1))
    (tmp_path / "kubeconfig").write_text(kubeconfig)
    (tmp_path / "cloud.conf").write_text(CONFIG)
    kube = Kube.from_kubeconfig(kubeconfig)
    kube.create(NODES, NODE)
    kube.create(SERVICES, SERVICE, "default")

    code = main(
        [
            "plan",
            "--cloud=tiny",
            f"--cloud-config={tmp_path / 'cloud.conf'}",
            f"--kubeconfig={tmp_path / 'kubeconfig'}",
            f"--controllers={','.join(CONTROLLERS)}",
        ]
    )

    planned = capsys.readouterr().out
    assert code == 0
    assert "node/n1: initialise as only in here" in planned
    assert "service/default/web" in planned

    stop = threading.Event()
    manager = Manager(kube, clouds.load("tiny", CONFIG), ManagerOptions(CONTROLLERS, leader_elect=False))
    daemon = threading.Thread(target=manager.run, args=(stop,))
    daemon.start()
    try:
        until(lambda: kube.get(NODES, "n1")["spec"].get("providerID") == "tiny://n1")
        until(lambda: bool(kube.get(SERVICES, "web", "default")["status"]["loadBalancer"].get("ingress")))
        assert len(load_balancers()) == 1
        kube.delete(SERVICES, "web", "default")
        until(lambda: all(each["metadata"]["name"] != "web" for each in kube.list(SERVICES, "default").items))
    finally:
        stop.set()
        daemon.join(60)
    assert not load_balancers()

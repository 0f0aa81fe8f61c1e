"""Machines on a real control plane: nodes, pods as processes, forwarding. Addresses: 127.3.x to 127.15.x, no site's."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cloud_controller.kube import (
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    Kube,
    NotFoundError,
    Object,
    PatchType,
)
from local.addresses import socket_address
from local.control_plane.binaries import ensure
from local.control_plane.control_plane import ControlPlane
from tests.waiting import eventually

pytestmark = pytest.mark.control_plane

PATIENCE = 60.0
TTL = timedelta(hours=1)


@dataclass
class Machine:
    """A machine's directory, and its process while it runs."""

    name: str
    address: str
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket_address(self) -> str:
        return socket_address(self.address)

    def boot(self) -> None:
        """Start the machine's process."""
        with (self.directory / "machine.log").open("ab") as log:
            command = [sys.executable, "-m", "local.machine", str(self.directory)]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal and wait; returns the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(timeout=PATIENCE)
        self.process = None
        return code

    @property
    def log(self) -> str:
        return (self.directory / "machine.log").read_text()


@dataclass
class Cluster:
    """A control plane without a cloud: tests act as the cloud controller."""

    control_plane: ControlPlane
    kube: Kube
    directory: Path
    machine_range: str
    machines: dict[str, Machine] = field(default_factory=dict)

    def machine(self, name: str, **settings: Any) -> Machine:
        """A booting machine; its node has this `name`."""
        directory = self.directory / name
        directory.mkdir()
        address = f"{self.machine_range}.{len(self.machines) + 2}"
        config: dict[str, Any] = {
            "id": f"i-{name}",
            "node_name": name,
            "address": address,
            "provider_id": None,
            "role": "worker",
            "node_labels": {},
            "type": "m1.small",
        }
        (directory / "machine.json").write_text(json.dumps(config | settings))
        self.control_plane.write_kubelet_credentials(directory, name, address, TTL)
        machine = self.machines[name] = Machine(name, address, directory)
        machine.boot()
        return machine

    def ready_machine(self, name: str, **settings: Any) -> Machine:
        """A machine whose node is ready and initialised, so that pods are scheduled to it."""
        machine = self.machine(name, **settings)
        eventually(lambda: self.is_ready(name), f"node {name} is ready; its log:\n{machine.log}")
        eventually(lambda: self.node(name)["spec"].get("podCIDR"), f"node {name} has a pod range")
        self.kube.patch(NODES, name, {"spec": {"taints": None}}, type=PatchType.MERGE)
        return machine

    def remove(self, machine: Machine) -> None:
        """Stop the machine and delete its node, so that no later pod is scheduled to it."""
        assert machine.end() == 0
        self.kube.delete(NODES, machine.name)

    def node(self, name: str) -> Object:
        return self.kube.get(NODES, name)

    def lease(self, name: str) -> Object | None:
        """The node's lease, or None."""
        try:
            return self.kube.get(LEASES, name, "kube-node-lease")
        except NotFoundError:
            return None

    def is_ready(self, name: str) -> bool:
        """Whether the node exists and is Ready."""
        try:
            conditions = self.node(name)["status"].get("conditions") or []
        except NotFoundError:
            return False
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def pod(self, name: str) -> Object | None:
        """The current pod, or None."""
        try:
            return self.kube.get(PODS, name, "default")
        except NotFoundError:
            return None

    def run_pod(self, name: str, node: str, container: Object, **spec: Any) -> Object:
        """Create a pod of one container `c`, bound to the node."""
        base = {"name": "c", "image": "registry.local/web:1"}
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {
                "nodeName": node,
                "terminationGracePeriodSeconds": 5,
                "tolerations": [{"operator": "Exists"}],
                "containers": [base | container],
                **spec,
            },
        }
        return self.kube.create(PODS, pod, "default")

    def pod_that(self, name: str, holds: Callable[[Object], bool], what: str) -> Object:
        """Wait for the pod to be so and return it."""

        def reached() -> Object | None:
            pod = self.pod(name)
            return pod if pod is not None and holds(pod) else None

        found = eventually(reached, f"pod {name} {what}; events: {self.events(name)}")
        assert found is not None
        return found

    def phase_is(self, name: str, phase: str) -> Object:
        """Wait for the pod's phase and return the pod."""
        return self.pod_that(name, lambda pod: pod["status"]["phase"] == phase, f"is {phase}")

    def readiness_is(self, name: str, ready: bool) -> Object:
        """Wait until the pod is ready, or unready, and return it."""
        return self.pod_that(name, lambda pod: pod_is_ready(pod) is ready, f"has readiness {ready}")

    def events(self, about: str) -> list[str]:
        """`REASON: message` of each event of an object."""
        found = self.kube.list(EVENTS, "default", field_selector=f"involvedObject.name={about}").items
        return [f"{event['reason']}: {event['message']}" for event in found]

    def has_event(self, about: str, *texts: str) -> None:
        """Wait for an event of the object with all of the texts: events are posted later than their cause."""
        eventually(
            lambda: any(all(text in event for text in texts) for event in self.events(about)),
            f"an event of {about} says {' and '.join(texts)}",
        )

    def container_log(self, machine: Machine, pod: Object) -> str:
        """The output of container `c` so far."""
        log = machine.directory / "pods" / pod["metadata"]["uid"] / "c.log"
        return log.read_text() if log.exists() else ""


def pod_is_ready(pod: Object) -> bool:
    """Whether the pod's Ready condition holds."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions") or [])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane for these tests; the running machines are stopped at the end."""
    binaries = ensure(lambda line: print(line, file=sys.stderr))
    with _own_octet() as octet:
        directory = tmp_path_factory.mktemp("cluster")
        control_plane = ControlPlane(
            directory / "control-plane",
            binaries,
            f"10.{octet}.1.1",
            f"10.{octet}.128.0/18",
            f"10.{octet}.64.0/22",
            "test",
        )
        control_plane.start()
        made = None
        try:
            control_plane.wait_ready()
            kube = Kube.from_kubeconfig(control_plane.kubeconfig("admin", ["system:masters"], TTL))
            made = Cluster(control_plane, kube, directory, f"10.{octet}.2")
            yield made
        finally:
            for machine in made.machines.values() if made else ():
                if machine.process is not None:
                    machine.end()
            control_plane.stop()


class _own_octet:  # noqa: N801 - a context manager
    """A second octet of 127.x that no other session of these tests uses: a bound port is the reservation."""

    def __enter__(self) -> int:
        octets = list(range(3, 16))
        random.Random(os.urandom(8)).shuffle(octets)
        for octet in octets:
            self._socket = socket.socket()
            try:
                self._socket.bind((f"127.{octet}.255.254", 1024))
            except OSError:
                self._socket.close()
                continue
            return octet
        raise AssertionError("every range of addresses is in use by another session")

    def __exit__(self, *_: object) -> None:
        self._socket.close()


# ------------------------------------------------------------------------------------------------------------ helpers

POD_ENV = [
    {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
]
WEB: Object = {
    "env": POD_ENV,
    "ports": [{"name": "http", "containerPort": 8080}],
    "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "timeoutSeconds": 10},
}


def shell(script: str, **more: Any) -> Object:
    """A container that runs a shell script."""
    return {"command": ["sh", "-c", script], "env": POD_ENV, **more}


def get(url: str, client: str = "127.0.0.1") -> Object | None:
    """The web workload's JSON answer to a client of this address, or None without one."""
    status, answer = answer_of(url, client)
    return answer if status == 200 else None


def answer_of(url: str, client: str) -> tuple[int, Object]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30, source_address=(client, 0))
    try:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        return response.status, json.loads(response.read() or "{}")
    except (OSError, http.client.HTTPException):
        return 0, {}
    finally:
        connection.close()


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def pid_of(pod: Object) -> int:
    return int(pod["status"]["containerStatuses"][0]["containerID"].removeprefix("process://"))


@pytest.fixture(scope="module")
def worker(cluster: Cluster) -> Machine:
    """A machine for the tests that only run pods on it."""
    return cluster.ready_machine("worker")


# -------------------------------------------------------------------------------------------------------------- nodes


def test_a_machine_registers_its_node_tainted_and_renews_its_lease(cluster: Cluster) -> None:
    machine = cluster.machine("fresh", node_labels={"pool": "p", "node-role.kubernetes.io/control-plane": ""})

    eventually(lambda: cluster.is_ready("fresh"), "node fresh is ready")
    node = cluster.node("fresh")
    taints = {taint["key"] for taint in node["spec"]["taints"]}
    assert "node.cloudprovider.kubernetes.io/uninitialized" in taints
    assert "providerID" not in node["spec"]
    assert node["metadata"]["labels"]["pool"] == "p"
    assert "node-role.kubernetes.io/control-plane" not in node["metadata"]["labels"]
    assert "node-role.kubernetes.io/control-plane" in machine.log
    assert node["metadata"]["annotations"]["alpha.kubernetes.io/provided-node-ip"] == machine.address
    assert node["status"]["addresses"] == [
        {"type": "InternalIP", "address": machine.address},
        {"type": "Hostname", "address": "fresh"},
    ]
    lease = eventually(lambda: cluster.lease("fresh"), "there is a lease")
    assert lease is not None
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    first = lease["spec"]["renewTime"]
    eventually(lambda: (cluster.lease("fresh") or lease)["spec"]["renewTime"] != first, "the lease is renewed")
    cluster.remove(machine)


# --------------------------------------------------------------------------------------------------------- forwarding


def test_readiness_takes_an_endpoint_out_and_puts_it_back(cluster: Cluster, worker: Machine) -> None:
    probe = {"exec": {"command": ["test", "-e", "/state/ready"]}, "periodSeconds": 1, "failureThreshold": 1}
    probe["timeoutSeconds"] = 30  # only the file decides, not how fast a busy machine starts the command
    container = {**WEB, "readinessProbe": probe, "volumeMounts": [{"name": "state", "mountPath": "/state"}]}
    pod = cluster.run_pod("switch", "worker", container, volumes=[{"name": "state", "emptyDir": {}}])
    spec = {"type": "NodePort", "selector": {"app": "switch"}, "ports": [{"port": 8080}]}
    service = cluster.kube.create(SERVICES, {"metadata": {"name": "switch"}, "spec": spec}, "default")
    url = f"http://{worker.socket_address}:{service['spec']['ports'][0]['nodePort']}/"
    switch = worker.directory / "pods" / pod["metadata"]["uid"] / "volumes" / "state" / "ready"
    cluster.phase_is("switch", "Running")
    assert get(url) is None

    switch.touch()
    eventually(lambda: get(url), "the ready pod answers")
    switch.unlink()

    eventually(lambda: get(url) is None, "the unready pod is out")
    cluster.readiness_is("switch", False)
    cluster.has_event("switch", "Unhealthy: Readiness probe failed")
    slices = cluster.kube.list(ENDPOINT_SLICES, "default", label_selector="kubernetes.io/service-name=switch").items
    assert [endpoint["conditions"]["ready"] for s in slices for endpoint in s["endpoints"]] == [False]


def test_the_proxier_reports_its_health(worker: Machine) -> None:
    eventually(lambda: get(f"http://{worker.socket_address}:10256/healthz"), "the health port answers")
    assert answer_of(f"http://{worker.socket_address}:10256/other", "127.0.0.1")[0] == 404


# --------------------------------------------------------------------------------------------------------------- pods

IN_CLUSTER = """
import sys
from cloud_controller.kube import Kube
print("version", Kube.in_cluster().version()["gitVersion"], flush=True)
for path in sys.argv[1:]:
    print(path.rpartition("/")[2], open(path).read(), flush=True)
"""


@pytest.mark.parametrize("isolation", ["mounts", "paths"])
def test_a_pod_gets_its_volumes_its_environment_and_its_service_account(cluster: Cluster, isolation: str) -> None:
    machine = cluster.ready_machine(f"by-{isolation}", isolation=isolation)
    name = f"all-{isolation}"
    cluster.kube.create(SECRETS, {"metadata": {"name": name}, "stringData": {"conf": "secret-text"}}, "default")
    cluster.kube.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": {"settings": "map-text"}}, "default")
    projected = {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}
    container = {
        "command": [sys.executable, "-c", IN_CLUSTER],
        "args": ["$(CONFIG_FILE)", "/etc/maps/settings", "/etc/info/labels"],
        "env": [{"name": "CONFIG_FILE", "value": "/etc/cloud/conf"}],
        "volumeMounts": [
            {"name": "secret", "mountPath": "/etc/cloud"},
            {"name": "map", "mountPath": "/etc/maps"},
            {"name": "info", "mountPath": "/etc/info"},
        ],
    }
    volumes = [
        {"name": "secret", "secret": {"secretName": name, "defaultMode": 0o400}},
        {"name": "map", "configMap": {"name": name}},
        {"name": "info", "projected": {"sources": [{"downwardAPI": projected}]}},
    ]
    pod = cluster.run_pod(name, machine.name, container, volumes=volumes, restartPolicy="Never")

    eventually(lambda: (cluster.pod(name) or {})["status"]["phase"] in ("Succeeded", "Failed"), "the pod ends")

    log = cluster.container_log(machine, pod)
    assert "version v1." in log, log
    assert "conf secret-text" in log
    assert "settings map-text" in log
    assert f'labels app="{name}"' in log
    cluster.phase_is(name, "Succeeded")
    cluster.remove(machine)


def test_a_container_with_an_unknown_image_waits_with_the_reason(cluster: Cluster, worker: Machine) -> None:
    cluster.run_pod("no-image", worker.name, {"image": "nginx:1"})

    def reason() -> str:
        statuses = (cluster.pod("no-image") or {})["status"].get("containerStatuses") or [{}]
        return str(statuses[0].get("state", {}).get("waiting", {}).get("reason"))

    eventually(lambda: reason() == "ErrImagePull", "the reason is ErrImagePull")
    eventually(lambda: reason() == "ImagePullBackOff", "the reason is ImagePullBackOff")
    cluster.has_event("no-image", "nginx:1", "registry.local/web")
    # The image of a pod can be changed, and is then tried.
    patch = {"spec": {"containers": [{"name": "c", "image": "registry.local/web:1"}]}}
    cluster.kube.patch(PODS, "no-image", patch, "default", type=PatchType.STRATEGIC)
    eventually(lambda: (cluster.pod("no-image") or {})["status"]["containerStatuses"][0]["restartCount"] > 0, "it ran")


def test_a_deleted_pod_gets_its_grace_before_its_object_is_deleted(cluster: Cluster, worker: Machine) -> None:
    script = "trap 'echo bye > /out/bye; exit 0' TERM; touch /out/trapped; while :; do sleep 0.1; done"
    container = shell(script, volumeMounts=[{"name": "out", "mountPath": "/out"}])
    kept = worker.directory / "kept"
    kept.mkdir()
    volumes = [{"name": "out", "hostPath": {"path": str(kept)}}]
    cluster.run_pod("graceful", worker.name, container, volumes=volumes, terminationGracePeriodSeconds=30)
    pod = cluster.readiness_is("graceful", True)
    # Without a probe it is ready as soon as it runs.
    eventually((kept / "trapped").exists, "the container can be asked to end")

    cluster.kube.delete(PODS, "graceful", "default")

    eventually(lambda: cluster.pod("graceful") is None, "the object is gone")
    assert (kept / "bye").read_text() == "bye\n"
    assert not is_running(pid_of(pod))
    # As with a real kubelet, its remains are cleared afterwards.
    eventually(lambda: not (worker.directory / "pods" / pod["metadata"]["uid"]).exists(), "its folder is gone")


def test_a_container_that_fails_is_restarted_with_backoff_and_remembers_its_end(
    cluster: Cluster, worker: Machine
) -> None:
    cluster.run_pod("crashing", worker.name, shell("exit 3"))

    def status() -> Object:
        statuses = (cluster.pod("crashing") or {})["status"].get("containerStatuses") or [{}]
        return dict(statuses[0])

    eventually(lambda: status().get("restartCount", 0) >= 2, "it is restarted")
    eventually(lambda: status()["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff", "it backs off")
    assert status()["lastState"]["terminated"]["exitCode"] == 3
    cluster.kube.delete(PODS, "crashing", "default")
    eventually(lambda: cluster.pod("crashing") is None, "the object is gone")


def test_a_container_that_fails_its_liveness_probe_is_restarted(cluster: Cluster, worker: Machine) -> None:
    probe = {"tcpSocket": {"port": 9}, "periodSeconds": 1, "failureThreshold": 1}
    cluster.run_pod("not-alive", worker.name, {**WEB, "livenessProbe": probe})

    eventually(
        lambda: (cluster.pod("not-alive") or {})["status"].get("containerStatuses", [{}])[0].get("restartCount"),
        "it is restarted",
    )
    cluster.has_event("not-alive", "failed liveness probe")
    cluster.kube.delete(PODS, "not-alive", "default")


def test_unsupported_fields_of_a_pod_are_reported_in_events(cluster: Cluster, worker: Machine) -> None:
    cluster.run_pod("limited", worker.name, {**WEB, "resources": {"limits": {"memory": "64Mi"}}})
    cluster.run_pod("prepared", worker.name, WEB, initContainers=[{"name": "i", "image": "registry.local/web:1"}])

    cluster.has_event("limited", "resources.limits")
    cluster.has_event("prepared", "initContainers")
    assert cluster.readiness_is("limited", True)
    pod = cluster.pod("prepared")
    assert pod is not None
    assert pod["status"]["phase"] == "Pending"
    for name in ("limited", "prepared"):
        cluster.kube.delete(PODS, name, "default", grace_seconds=1)
    eventually(lambda: cluster.pod("prepared") is None, "the refused pod can be deleted")


def test_a_process_that_binds_every_address_gets_a_warning(cluster: Cluster, worker: Machine) -> None:
    script = "import socket, time; s = socket.socket(); s.bind(('0.0.0.0', 0)); s.listen(); time.sleep(300)"
    cluster.run_pod("wildcard", worker.name, {"command": [sys.executable, "-c", script]})

    cluster.has_event("wildcard", "WildcardBind: ")
    cluster.kube.delete(PODS, "wildcard", "default", grace_seconds=1)


def test_a_pod_starts_once_its_secret_exists(cluster: Cluster, worker: Machine) -> None:
    volumes = [{"name": "s", "secret": {"secretName": "late"}}]
    cluster.run_pod("patient", worker.name, WEB, volumes=volumes)
    cluster.has_event("patient", 'secret "late" not found')

    cluster.kube.create(SECRETS, {"metadata": {"name": "late"}, "stringData": {"a": "b"}}, "default")

    cluster.readiness_is("patient", True)
    cluster.kube.delete(PODS, "patient", "default", grace_seconds=1)


def test_a_pod_that_is_removed_by_force_leaves_no_process(cluster: Cluster, worker: Machine) -> None:
    cluster.run_pod("forced", worker.name, shell("trap '' TERM; while :; do sleep 0.1; done"))
    pid = pid_of(cluster.readiness_is("forced", True))

    cluster.kube.delete(PODS, "forced", "default", grace_seconds=0)

    assert cluster.pod("forced") is None
    eventually(lambda: not is_running(pid), "the process ends")


def test_containers_of_a_pod_share_its_volumes_and_a_completed_pod_stays(cluster: Cluster, worker: Machine) -> None:
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    image = "registry.local/web:1"
    containers = [
        {"name": "c", "image": image, **shell("until cat /shared/x; do sleep 0.1; done", volumeMounts=mounts)},
        {"name": "d", "image": image, **shell("echo from-d > /shared/x.new; mv /shared/x.new /shared/x; exit 0")},
    ]
    containers[1]["volumeMounts"] = mounts
    volumes = [{"name": "shared", "emptyDir": {}}]
    pod = cluster.run_pod("pair", worker.name, {}, containers=containers, volumes=volumes, restartPolicy="OnFailure")

    done = cluster.phase_is("pair", "Succeeded")

    assert cluster.container_log(worker, pod).endswith("from-d\n")
    assert not pod_is_ready(done)
    cluster.kube.delete(PODS, "pair", "default")
    eventually(lambda: cluster.pod("pair") is None, "the object is gone")


def test_pods_keep_running_while_the_api_server_is_down(cluster: Cluster) -> None:
    machine = cluster.ready_machine("patient")
    cluster.run_pod("steady", "patient", WEB)
    before = cluster.readiness_is("steady", True)

    cluster.control_plane.stop()
    url = f"http://127{before['status']['podIP'].removeprefix('10')}:8080/"
    assert get(url) is not None
    cluster.control_plane.start()
    cluster.control_plane.wait_ready()

    eventually(lambda: cluster.is_ready("patient"), "the node is ready")
    renewed = (cluster.lease("patient") or {})["spec"]["renewTime"]
    eventually(lambda: (cluster.lease("patient") or {})["spec"]["renewTime"] != renewed, "the lease is renewed again")
    after = cluster.readiness_is("steady", True)
    assert pid_of(after) == pid_of(before)
    cluster.kube.delete(PODS, "steady", "default")
    eventually(lambda: cluster.pod("steady") is None, "the machine sees changes again")
    cluster.remove(machine)

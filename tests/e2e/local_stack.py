"""A stack from an empty site to traffic, used like a user does: through `python -m local`."""

from __future__ import annotations

import functools
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.kube import Kube
from local.processes import Process, find_all
from local.pulumi.backend import locks
from local.pulumi.cli import on_stack

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 180.0
"""Seconds that a condition may take; it is usually true within a few, and a busy machine has its pauses."""

RUN_SECONDS = 500.0
"""For one call of a command line; a whole stack takes less than two minutes on two quiet cores."""


@dataclass(frozen=True)
class LocalStack:
    """A stack in a state folder of the test's own, with a stack file that the test may change."""

    state: Path
    stack_file: Path
    name: str = "local"

    @classmethod
    def copied(cls, state: Path, name: str) -> LocalStack:
        """The project's stack of this name, with a copy of its file."""
        stack_file = state / "input" / f"Pulumi.{name}.yaml"
        stack_file.parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "stacks" / stack_file.name, stack_file)
        return cls(state, stack_file, name)

    def run(self, verb: str, *arguments: str, expect: int = 0, **environment: str) -> str:
        """Run `python -m local VERB`; returns its output, a failure's with its errors.

        The test fails with all of it if the exit code differs.
        """
        done = subprocess.run(
            [*self._command(verb), *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
            env={**os.environ, "PULUMI_DEBUG_COMMANDS": "true", **environment},  # for --event-log
        )
        assert done.returncode == expect, f"{verb}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr if expect else done.stdout

    def start(self, verb: str) -> subprocess.Popen[bytes]:
        """Start `python -m local VERB` without waiting; the caller ends it."""
        return subprocess.Popen(self._command(verb), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _command(self, verb: str) -> list[str]:
        where = ["--stack", self.name, "--state", str(self.state), "--config-file", str(self.stack_file)]
        return [sys.executable, "-m", "local", verb, *where]

    def configure(self, key: str, value: Any) -> None:
        """Set one key of the stack's configuration, as a user edits the file."""
        settings = yaml.safe_load(self.stack_file.read_text())
        settings["config"][f"cloud-controller:{key}"] = value
        self.stack_file.write_text(yaml.safe_dump(settings))

    def scale_workers(self, count: int) -> None:
        """Set the machine count of the pool `workers`."""
        settings = yaml.safe_load(self.stack_file.read_text())
        for pool in settings["config"]["cloud-controller:nodePools"]:
            if pool["name"] == "workers":
                pool["count"] = count
        self.stack_file.write_text(yaml.safe_dump(settings))

    def changes(self, verb: str, *arguments: str) -> dict[str, int]:
        """The counts of operations in Pulumi's summary event, without `same`."""
        log = self.state / "events"
        log.unlink(missing_ok=True)
        self.run(verb, "--event-log", str(log), *arguments)
        summaries = [
            event["summaryEvent"] for event in map(json.loads, log.read_text().splitlines()) if "summaryEvent" in event
        ]
        # An `up` begins with a preview.
        return {op: n for op, n in summaries[-1]["resourceChanges"].items() if op != "same" and n}

    def pulumi(self, *words: str, given: str = "", expect: int = 0) -> str:
        """Run `python -m local pulumi -- WORDS`; returns the output, a failure's with its errors."""
        done = subprocess.run(
            [*self._command("pulumi"), "--", *words],
            cwd=ROOT,
            input=given,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert done.returncode == expect, f"{words}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr if expect else done.stdout

    def on_copy(self, command: str, *, config_file: Path | None = None, expect: int = 0) -> str:
        """Run `pulumi up` or `destroy` with the site's copy of the stack file as it is, and leave the site running."""
        stack_dir = self.state / "stacks" / self.name
        cli = on_stack(ROOT, self.name, stack_dir)
        options = ["--non-interactive", *(["--config-file", str(config_file)] if config_file else [])]
        done = subprocess.run(
            [cli.tools.pulumi, *cli.operation(command, options)],
            env=cli.environment(os.environ),
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert done.returncode == expect, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    @property
    def site_copy(self) -> Path:
        """The site's completed copy of the stack file."""
        return self.state / "stacks" / self.name / f"Pulumi.{self.name}.yaml"

    @property
    def outputs(self) -> dict[str, Any]:
        """The stack's outputs, secrets masked."""
        outputs: dict[str, Any] = json.loads(self.pulumi("stack", "output", "--json"))
        return outputs

    @property
    def cloud(self) -> Client:
        """mycloud's API, as the stack uses it."""
        site = json.loads((self.state / "site.json").read_text())
        return _client(site["endpoint"], (self.state / "mycloud" / "token").read_text().strip())

    @property
    def kube(self) -> Kube:
        """The stack's cluster, as its administrator."""
        settings = yaml.safe_load(self.stack_file.read_text())
        cloud = self.cloud
        (cluster,) = cloud.list("clusters", name=settings["config"]["cloud-controller:clusterName"])
        return _administrator(cloud, cluster["id"])

    def processes(self) -> list[Process]:
        """Every process recorded by the site."""
        # By name, not by listing: folders of pods appear and disappear.
        clouds = [self.state / "mycloud", *self.state.glob("aws/*/cloud")]
        folders = [folder for cloud in clouds for folder in (cloud / "processes", *cloud.glob("clusters/*/processes"))]
        return [process for folder in folders for process in find_all(folder)]

    def running(self, processes: list[Process]) -> list[str]:
        """The names of the recorded processes that run."""
        return [p.name for p in processes if p.is_running()]

    def kill(self, name: str) -> None:
        """SIGKILL the one process with this name."""
        (process,) = [p for p in self.processes() if p.name == name]
        process.signal(signal.SIGKILL)

    def signal_pulumi(self, number: signal.Signals) -> None:
        """Send a signal to the run of Pulumi's CLI that changes the stack."""
        (lock,) = locks(self.state / "stacks" / self.name)
        os.kill(lock.pid, number)

    def kill_machine(self, id: str) -> None:
        """SIGKILL the machine; its pods die with it."""
        (process,) = [p for p in self.processes() if p.name.endswith(f"({id})")]
        process.signal(signal.SIGKILL)

    def start_stopped_machines(self) -> None:
        """Boot the machines that are stopped, or were killed and soon are, and wait until they run."""
        cloud = self.cloud
        for machine in eventually(lambda: cloud.list("machines", state="stopped"), "a machine is stopped"):
            cloud.post(f"machines/{machine['id']}/start", {})
            cloud.wait_for_state("machines", machine["id"], ["running"], PATIENCE)


# Kept, with their connections: what a test waits for it requests four times a second, and a new client of the cluster
# costs 50 ms of processor time, in three processes.
@functools.cache
def _client(endpoint: str, token: str) -> Client:
    return Client(endpoint, token)


@functools.cache
def _administrator(cloud: Client, cluster_id: str) -> Kube:
    return Kube.from_kubeconfig(cloud.get_path(f"clusters/{cluster_id}/kubeconfig")["kubeconfig"])


def eventually(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Wait until the condition is true and return its value; a failure shows the last value."""
    deadline = time.monotonic() + patience
    value = condition()
    while not value:
        assert time.monotonic() < deadline, f"not within {patience:.0f} s: {what}; last seen: {value!r}"
        time.sleep(0.25)
        value = condition()
    return value


def http_get(url: str) -> dict[str, Any]:
    """The JSON answer of the web workload; without a proxy, because it is loopback."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    # A closed port is reported at once; a busy machine is not mistaken for a dead one.
    with opener.open(url, timeout=30) as response:
        body: dict[str, Any] = json.loads(response.read())
    return body


def answers(url: str) -> str | None:
    """The pod of the web workload that answers now; none if the connection is refused or reset."""
    try:
        return str(http_get(url)["pod"])
    except (OSError, http.client.HTTPException):
        return None


def udp_echo(host: str, port: int, message: bytes) -> bytes:
    """The answer to one datagram, which is sent again when it is lost, as UDP may lose it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(1)
        for _ in range(60):
            client.sendto(message, (host, port))
            try:
                return client.recv(2048)
            except (TimeoutError, ConnectionRefusedError):
                continue
    raise AssertionError(f"no datagram came back from {host}:{port}")

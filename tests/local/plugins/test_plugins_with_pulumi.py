"""Plugins that Pulumi's real CLI starts by their launchers: recorded packages, offline runs, policies, their ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.plugins.launchers import installed, write_launchers, write_offline_launchers
from local.plugins.values import SIGNATURE
from tests.local.plugins.stack_with_cli import environment, tools
from tests.policy_objects import PACK
from tests.waiting import eventually

pytestmark = pytest.mark.cli

DISKS = """
import pulumi.dynamic


class Provider(pulumi.dynamic.ResourceProvider):
    def check(self, olds, news):
        failures = [pulumi.dynamic.CheckFailure("size", "is too large")] if news["size"] > 9 else []
        return pulumi.dynamic.CheckResult({**news, "checked": True}, failures)

    def diff(self, id, olds, news):
        return pulumi.dynamic.DiffResult(changes=olds != news, replaces=["net"] if olds["net"] != news["net"] else [])

    def create(self, props):
        open("created", "w").close()
        return pulumi.dynamic.CreateResult("real", props)


class Disk(pulumi.dynamic.Resource):
    def __init__(self, name, **props):
        super().__init__(Provider(), name, props)
"""
PROGRAM = """
import json
import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes
from disks import Disk

config = pulumi.Config()
net = aws.ec2.Vpc("net", cidr_block=config.get("cidr") or "10.0.0.0/16")
disk = Disk("disk", size=config.get_int("size") or 1, net=net.id)
where = net.arn.apply(lambda arn: json.dumps({"server": arn}))
cluster = pulumi.ResourceOptions(provider=kubernetes.Provider("cluster", kubeconfig=where))
web = kubernetes.core.v1.Service("web", metadata={"name": "web"}, spec={"type": "LoadBalancer"}, opts=cluster)
pulumi.export("net", net.id)
pulumi.export("host", web.status.load_balancer.ingress[0].hostname)
"""
TLS = """
import pulumi
import pulumi_tls as tls

key = tls.PrivateKey("key", algorithm="ED25519", opts=pulumi.ResourceOptions(protect=False))
pulumi.export("key", key.public_key_pem)
"""
SERVICE = """
import pulumi
import pulumi_kubernetes as kubernetes

cluster = pulumi.ResourceOptions(provider=kubernetes.Provider("cluster", kubeconfig="{}"))
kubernetes.core.v1.Service("web", metadata={"name": "web"}, spec={"type": "LoadBalancer"}, opts=cluster)
"""


class Project:
    """A program in a folder of its own, run by the CLI."""

    def __init__(self, folder: Path, program: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        (folder / "Pulumi.yaml").write_text("name: test\nruntime: python\n")
        (folder / "__main__.py").write_text(program)
        (folder / "disks.py").write_text(DISKS)
        (folder / "state").mkdir()
        self.environment = environment(folder)
        self.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), self.environment["PATH"]])

    def offline(self) -> Project:
        first = write_offline_launchers(self.home, installed(), sys.executable)
        self.environment["PATH"] = os.pathsep.join([str(first), self.environment["PATH"]])
        return self

    def run(self, command: str, *options: str) -> tuple[int, str]:
        """The exit code, and the output."""
        done = subprocess.run(self.call(command, *options), env=self.environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def call(self, command: str, *options: str) -> list[str]:
        more = ["--yes", "--skip-preview"] if command in ("up", "refresh", "destroy") else []
        return [str(tools().pulumi), *command.split(), *more, *options, *self.where]

    @property
    def where(self) -> list[str]:
        return ["--stack", "dev", "--cwd", str(self.folder), "--non-interactive"]

    def outputs(self) -> dict[str, Any]:
        return dict(json.loads(self.run("stack output", "--json")[1]))


@pytest.fixture
def offline(tmp_path: Path) -> Project:
    project = Project(tmp_path, PROGRAM).offline()
    assert project.run("stack init")[0] == 0
    return project


@pytest.fixture
def recorded(tmp_path: Path) -> Project:
    project = Project(tmp_path, TLS)
    write_launchers(project.home, {"tls": installed()["tls"]})
    assert project.run("stack init")[0] == 0
    return project


def test_offline_a_preview_knows_everything_an_update_records_that_and_then_nothing_changes(offline: Project) -> None:
    code, foreseen = offline.run("preview", "--diff")

    assert code == 0, foreseen
    assert 'net : "vpc-' in foreseen and ".simulated.invalid" in foreseen and "[unknown]" not in foreseen
    assert "checked   : true" in foreseen and "+ 5 to create" in foreseen
    for package in ("aws", "kubernetes", "pulumi-python"):
        assert foreseen.count(f"simulated resources, with nothing real behind them: package {package}\n") == 1

    code, output = offline.run("up")

    assert code == 0, output
    assert all(f'"{value}"' in foreseen for value in offline.outputs().values())
    assert not (offline.folder / "created").exists(), "the program's own provider only checks"
    assert "5 unchanged" in offline.run("preview")[1]
    assert "5 unchanged" in offline.run("refresh")[1]


def test_offline_a_preview_shows_what_is_refused_and_what_is_replaced(offline: Project) -> None:
    offline.run("up")

    refused = offline.run("preview", "-c", "test:size=10")
    _, replaced = offline.run("preview", "-c", "test:size=1", "-c", "test:cidr=10.1.0.0/16")

    assert refused[0] != 0 and "is too large" in refused[1]
    assert "aws:ec2:Vpc net replace" in replaced and "dynamic:Resource disk replace" in replaced


@pytest.mark.parametrize(
    ("level", "command"),
    [("disabled", "preview"), ("advisory", "up --yes"), ("mandatory", "preview"), ("mandatory", "up --yes")],
)
def test_a_violated_rule_is_told_at_its_level_and_stops_the_run_if_mandatory(
    tmp_path: Path, level: str, command: str
) -> None:
    rule = "lb-service-limit-sources"
    project = Project(tmp_path, SERVICE).offline()
    project.run("stack init")
    settings = tmp_path / "policies.json"
    settings.write_text(json.dumps({"all": "disabled", rule: level}))

    code, output = project.run(command, "--policy-pack", str(PACK), "--policy-pack-config", str(settings))

    assert code == (1 if level == "mandatory" else 0), output
    assert "cloud-controller-checklist@v0.1.0" in output
    told = f"[{level}] [severity: medium]  {rule}  (kubernetes:core/v1:Service: web)" in output
    assert told is (rule in output) is (level != "disabled"), output
    assert ("Service::web" in project.run("stack export")[1]) is ((level, command) == ("advisory", "up --yes"))


def test_a_recorded_package_says_so_and_does_not_drift(recorded: Project) -> None:
    outcomes = [recorded.run(command) for command in ("preview", "up", "refresh", "preview")]
    state = (recorded.folder / "state" / ".pulumi" / "stacks" / "test" / "dev.json").read_text()
    outcomes.append(recorded.run("destroy"))

    [key] = [r for r in json.loads(state)["checkpoint"]["latest"]["resources"] if r["urn"].endswith("::key")]
    assert key["outputs"]["publicKeyPem"].startswith("simulated-")
    assert SIGNATURE in key["outputs"]["privateKeyPem"], "the SDK declares it secret"
    assert [code for code, _ in outcomes] == [0] * 5, outcomes
    assert "simulated resources, with nothing real behind them: package tls" in outcomes[0][1]
    assert all("2 unchanged" in output for _, output in outcomes[2:4]) and "2 deleted" in outcomes[4][1]


def test_no_secret_of_a_recorded_resource_is_in_a_file(recorded: Project) -> None:
    program = recorded.folder / "__main__.py"
    program.write_text(
        "import pulumi, pulumi_tls as tls\n"
        "tls.SelfSignedCert('c', allowed_uses=[], private_key_pem=pulumi.Output.secret('hunter2-hunter2'),\n"
        "    validity_period_hours=1, dns_names=[pulumi.Output.secret('hunter3-hunter3')])\n"
    )

    code, output = recorded.run("up", "--event-log", str(recorded.folder / "events"), "--debug")

    assert code == 0, output
    shutil.rmtree(recorded.folder / "__pycache__", ignore_errors=True)  # The program's text, compiled.
    program.unlink()
    kept = [path.read_text(errors="replace") for path in recorded.folder.rglob("*") if path.is_file()]
    assert not any("hunter" in text for text in [output, *kept])


def processes_of(project: Project) -> list[int]:
    """The processes that the CLI has started for a project."""
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    mine = []
    for line in found.splitlines()[1:]:
        pid, _, command = line.strip().partition(" ")
        if "local.plugins" not in command and "pulumi.dynamic" not in command:
            continue
        try:
            if str(project.folder) in Path(f"/proc/{pid}/environ").read_text():
                mine.append(int(pid))
        except OSError:
            continue  # It has ended.
    return mine


@pytest.fixture
def waiting(offline: Project) -> Iterator[subprocess.Popen[bytes]]:
    """A CLI whose program waits, with plugins of its own."""
    with (offline.folder / "__main__.py").open("a") as program:
        program.write("pulumi.Output.all(disk.id, web.id).apply(lambda _: __import__('time').sleep(60))\n")
    process = subprocess.Popen(offline.call("up"), env=offline.environment, stdout=subprocess.DEVNULL)
    yield process
    process.kill()
    process.wait()


def test_plugins_end_when_the_cli_is_killed(offline: Project, waiting: subprocess.Popen[bytes]) -> None:
    # Those of aws and of dynamic resources, the latter's server, and that of Kubernetes.
    eventually(lambda: len(processes_of(offline)) >= 4, "the plugins run", 60)

    waiting.send_signal(signal.SIGKILL)

    eventually(lambda: not processes_of(offline), "the plugins are gone", 10)

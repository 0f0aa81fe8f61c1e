"""The state both ways with Pulumi's own CLI: a component, dynamic resources, secrets and a policy pack; no cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.engine.stack.secrets import new_crypter
from local.pulumi_cli import PulumiCli

pytestmark = [
    pytest.mark.cli,
    pytest.mark.skipif(shutil.which("pulumi") is None, reason="there is no `pulumi` on PATH"),
    pytest.mark.timeout(600),
]

ROOT = Path(__file__).resolve().parents[2]
PASSPHRASE = "sample-passphrase"
MACHINES = """
import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult


class MachineProvider(ResourceProvider):
    def diff(self, id, olds, news):
        return DiffResult(changes=olds.get("size") != news.get("size"))

    def create(self, props):
        return CreateResult(f"m-{props['size']}", {**props, "address": "10.0.0.1", "token": "t0p-secret"})

    def read(self, id, props):
        return ReadResult(id, props)

    def update(self, id, olds, news):
        return UpdateResult({**news, "address": "10.0.0.1", "token": "t0p-secret"})


class Machine(Resource, module="cloud", name="Machine"):
    address: pulumi.Output[str]
    token: pulumi.Output[str]

    def __init__(self, name, size, opts=None):
        secret = pulumi.ResourceOptions(additional_secret_outputs=["token"])
        properties = {"size": size, "address": None, "token": None}
        super().__init__(MachineProvider(), name, properties, pulumi.ResourceOptions.merge(opts, secret))
"""
PROGRAM = """
import pulumi
from real_pulumi_machines import Machine

config = pulumi.Config()


class Pool(pulumi.ComponentResource):
    def __init__(self, name, sizes):
        super().__init__("cloud:index:Pool", name, {"sizes": sizes})
        self.machines = [
            Machine(f"{name}-{size}", size, pulumi.ResourceOptions(parent=self, protect=config.get_bool("protect")))
            for size in sizes
        ]
        self.register_outputs({"addresses": [machine.address for machine in self.machines]})


pool = Pool("workers", config.require_object("sizes"))
pulumi.export("address", pool.machines[0].address)
pulumi.export("token", pool.machines[0].token)
pulumi.export("key", config.require_secret("key"))
"""
PACK = """
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy


def not_huge(args, report):
    if args.resource_type.endswith("Machine") and args.props["size"] == "huge":
        report("too large")


PolicyPack("sizes", [
    ResourceValidationPolicy("machine-small", "Small machines.", not_huge, enforcement_level=EnforcementLevel.MANDATORY)
])
"""


class Both:
    """One project, and both engines on it, each with a state of its own."""

    def __init__(self, directory: Path) -> None:
        self.project = directory / "project"
        self.pack = self.project / "policy"
        self.pack.mkdir(parents=True)
        self.state = directory / "state"
        self.cli = PulumiCli(self.project, "dev", self.state / "stacks" / "dev")
        self.cli.stack_dir.mkdir(parents=True)
        python = {"name": "python", "options": {"virtualenv": sys.prefix}}
        (self.project / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "machines", "runtime": python}))
        (self.project / "real_pulumi_machines.py").write_text(MACHINES)
        (self.project / "__main__.py").write_text(PROGRAM)
        (self.pack / "PulumiPolicy.yaml").write_text(yaml.safe_dump({"runtime": python, "version": "0.1.0"}))
        (self.pack / "__main__.py").write_text(PACK)
        self.environment = {**os.environ, "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}
        self._crypter = new_crypter(PASSPHRASE)
        self.configure(["small", "large"])

    def configure(self, sizes: list[str]) -> None:
        config = {"machines:sizes": sizes, "machines:key": {"secure": self._crypter.encrypt("the-key")}}
        stack_file = {"encryptionsalt": self._crypter.salt, "config": config}
        self.cli.stack_file.write_text(yaml.safe_dump(stack_file))

    def engine(self, *command: str, expect: int = 0) -> str:
        where = ["--stack", "dev", "--state", str(self.state), "--cwd", str(self.project)]
        call = [sys.executable, "-m", "local.engine", *command, *where, "--config-file", str(self.cli.stack_file)]
        return run(call, self.environment, expect)

    def pulumi(self, command: str, *options: str, expect: int = 0) -> str:
        """preview, up, refresh or destroy by the CLI, as `make ... ENGINE=pulumi` calls it."""
        return self._pulumi(self.cli.operation(command, options), expect)

    def pulumi_stack(self, *command: str) -> str:
        return self._pulumi(["stack", *command, "--stack", "dev", "--cwd", str(self.cli.stack_dir)], 0)

    def _pulumi(self, call: list[str], expect: int) -> str:
        environment = self.cli.environment(self.environment)
        pulumi = self.cli.require()
        self.cli.prepare()
        run([pulumi, *self.cli.init()], environment, 0)
        return run([pulumi, *call], environment, expect)


def run(call: list[str], environment: dict[str, str], expect: int) -> str:
    done = subprocess.run(call, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert (done.returncode == 0) == (expect == 0), f"{call}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def changes(preview: str) -> dict[str, int]:
    """The counts in the CLI's digest of a preview, or in the engine's events."""
    try:
        return dict(json.loads(preview)["changeSummary"])
    except (ValueError, KeyError):
        events = [json.loads(line) for line in preview.splitlines()]
        return next(dict(e["summaryEvent"]["resourceChanges"]) for e in events if "summaryEvent" in e)


def resources(export: str) -> dict[str, Any]:
    """What must be the same in both states, by URN: without times, ids of provider instances and ciphertexts."""

    def kept(resource: dict[str, Any]) -> dict[str, Any]:
        left_out = ("created", "modified", "sourcePosition", "stackTrace", "provider", "id")
        return {k: hidden(v) for k, v in resource.items() if k not in left_out}

    return {r["urn"]: kept(r) for r in json.loads(export)["deployment"].get("resources") or ()}


def hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return "[secret]" if "ciphertext" in value else {k: hidden(v) for k, v in value.items()}
    return [hidden(v) for v in value] if isinstance(value, list) else value


@pytest.fixture
def both(tmp_path: Path) -> Both:
    return Both(tmp_path)


def test_with_the_cli_up_is_idempotent_and_destroy_leaves_nothing(both: Both) -> None:
    both.pulumi("up")
    assert changes(both.pulumi("preview", "--json", "--expect-no-changes")) == {"same": 4}
    both.pulumi("refresh", "--expect-no-changes")
    both.pulumi("destroy")
    assert resources(both.pulumi_stack("export")) == {}


def test_the_cli_imports_our_state_and_its_preview_is_empty(both: Both) -> None:
    both.engine("up")
    export = both.state / "export.json"
    both.engine("stack", "export", "--file", str(export))

    both.pulumi_stack("import", "--file", str(export))

    assert changes(both.pulumi("preview", "--json", "--expect-no-changes")) == {"same": 4}
    assert resources(both.pulumi_stack("export")) == resources(export.read_text())


def test_our_engine_imports_the_clis_state_and_its_preview_is_empty(both: Both) -> None:
    both.pulumi("up")
    export = both.state / "export.json"
    export.write_text(both.pulumi_stack("export"))

    both.engine("stack", "import", "--file", str(export))

    assert changes(both.engine("preview", "--json")) == {"same": 4}
    assert resources(both.engine("stack", "export")) == resources(export.read_text())


def test_cli_and_engine_write_the_same_state(both: Both) -> None:
    both.engine("up")
    both.pulumi("up")
    assert resources(both.engine("stack", "export")) == resources(both.pulumi_stack("export"))


def test_cli_and_engine_plan_the_same_change(both: Both) -> None:
    both.engine("up")
    both.pulumi("up")
    both.configure(["small", "medium", "large"])
    assert changes(both.engine("preview", "--json")) == changes(both.pulumi("preview", "--json"))


def test_cli_and_engine_stop_at_a_mandatory_policy(both: Both) -> None:
    both.configure(["huge"])
    pack = ("--policy-pack", str(both.pack))
    assert "machine-small" in both.pulumi("preview", *pack, expect=1)
    assert "machine-small" in both.engine("preview", *pack, expect=1)
    both.configure(["small"])
    both.pulumi("preview", *pack)
    both.engine("preview", *pack)

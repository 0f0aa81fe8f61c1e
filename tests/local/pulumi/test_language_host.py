"""Pulumi's CLI runs Python programs by a language host: the official one on PATH, else ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml

from local.pulumi.cli import PulumiCli, on_stack
from local.pulumi.language_host import EXECUTOR
from local.waiting import wait_until

pytestmark = [pytest.mark.cli, pytest.mark.integration, pytest.mark.timeout(300)]

MACHINES = """
import time
from pulumi.dynamic import CreateResult, Resource, ResourceProvider

class MachineProvider(ResourceProvider):
    def create(self, props):
        if props["size"] == "endless":
            open("creating", "w").close()
            time.sleep(10_000)
        return CreateResult("m-1", props)

class Machine(Resource, module="cloud", name="Machine"):
    def __init__(self, name, size):
        super().__init__(MachineProvider(), name, {"size": size})
"""
PROGRAM = """
import pulumi
from sample_machines import Machine

print("the program prints")
size = pulumi.Config().require("size")
if size == "wrong":
    raise ValueError("no such size")
pulumi.export("id", Machine("web", size).id)
pulumi.export("key", pulumi.Config().require_secret("key"))
"""


class Sample:
    """A project with a dynamic resource."""

    def __init__(self, folder: Path, virtualenv: str = sys.prefix) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        python = {"name": "python", "options": {"virtualenv": virtualenv}}
        (self.project / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "sample", "runtime": python}))
        (self.project / "sample_machines.py").write_text(MACHINES)
        (self.project / "__main__.py").write_text(PROGRAM)
        self.cli: PulumiCli = on_stack(self.project, "dev", folder / "stacks" / "dev")
        self.cli.stack_dir.mkdir(parents=True)

    def configure(self, **config: str) -> None:
        """The secret `key` is set by the CLI itself, which needs the stack."""
        (self.cli.stack_dir / "passphrase").write_text("sample")
        values = {f"sample:{key}": value for key, value in config.items()}
        self.cli.stack_file.write_text(yaml.safe_dump({"config": values}))
        assert self.cli.command(["config", "set", "--secret", "key", "t0p-secret"], self.cli.stack_file) == 0

    def start(self, command: str, *options: str) -> subprocess.Popen[str]:
        call = [str(self.cli.tools.pulumi), *self.cli.operation(command, ["--non-interactive", *options])]
        environment = self.cli.environment(os.environ)
        pipe = subprocess.PIPE
        return subprocess.Popen(call, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)

    def run(self, command: str, *options: str, expect: int = 0) -> str:
        """Run the CLI; what it prints."""
        with self.start(command, *options) as process:
            shown, _ = process.communicate(timeout=280)
        assert (process.returncode == 0) is (expect == 0), shown
        return shown


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return Sample(tmp_path)


def test_a_failing_program_is_shown_once_with_its_line(sample: Sample) -> None:
    sample.configure(size="wrong")

    shown = sample.run("preview", expect=1)

    assert shown.count("ValueError: no such size") == 1
    assert "__main__.py" in shown
    assert "exit code" not in shown


def test_a_missing_virtual_environment_is_named(tmp_path: Path) -> None:
    sample = Sample(tmp_path, ".nowhere")
    sample.configure(size="small")

    assert str(sample.project / ".nowhere") in sample.run("preview", expect=1)


def test_a_killed_cli_leaves_neither_program_nor_language_host(sample: Sample) -> None:
    sample.configure(size="endless")
    run = sample.start("up", "--skip-preview")
    assert wait_until(lambda: (sample.project / "creating").exists(), 60)
    started = psutil.Process(run.pid).children(recursive=True)
    # The official language host looks for the CLI every five minutes only; its program ends at once.
    ours = [each for each in started if any(name in " ".join(each.cmdline()) for name in (EXECUTOR, "language_host"))]

    run.send_signal(signal.SIGKILL)
    run.wait()

    assert ours
    _, alive = psutil.wait_procs(ours, timeout=60)
    assert alive == []
    for each in started:  # the server of dynamic resources, which Pulumi's own launcher starts, lives on
        if each.is_running():
            each.kill()

"""Hooks and transforms with real processes: a program of its own, Ctrl-C while a hook waits, kill -9 within one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from local.engine.program.runner import run_in_subprocess
from tests.waiting import eventually

pytestmark = pytest.mark.engine

FILES = """
import pathlib
from pulumi import ResourceHook, ResourceHookBinding, ResourceOptions, ResourceTransformResult
from pulumi.dynamic import CreateResult, Resource, ResourceProvider

HERE = pathlib.Path(__file__).parent


def log(line):
    with (HERE / "log").open("a") as file:
        file.write(line + "\\n")


class FileProvider(ResourceProvider):
    def create(self, props):
        log("create " + props["name"])
        (HERE / "objects" / props["name"]).write_text(props["text"])
        return CreateResult(props["name"], dict(props))

    def delete(self, id, props):
        log("delete " + id)
        (HERE / "objects" / id).unlink(missing_ok=True)


class File(Resource):
    def __init__(self, name, opts=None):
        super().__init__(FileProvider(), name, {"name": name, "text": "plain"}, opts)
"""


class Project:
    """A project whose resources are files in a folder, and the engine's command line over it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "Pulumi.yaml").write_text("name: test\nruntime: python\n")
        (directory / "Pulumi.dev.yaml").write_text("config: {}\n")
        (directory / "files.py").write_text(FILES)
        (directory / "objects").mkdir()

    def write(self, program: str) -> None:
        """Write the program; files.py is available to it."""
        (self.directory / "__main__.py").write_text(f"import os, signal, time\nfrom files import *\n{program}")

    @property
    def log(self) -> list[str]:
        file = self.directory / "log"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def arguments(self) -> list[str]:
        return ["up", "-s", "dev", "-C", str(self.directory), "--state", str(self.directory / "state"), "-f", "--yes"]

    @property
    def command(self) -> list[str]:
        # A background test run makes its processes ignore Ctrl-C.
        return [sys.executable, "-m", "local.engine", *self.arguments]

    def up(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command, capture_output=True, text=True, check=False)

    def resources(self) -> list[dict[str, Any]]:
        document = json.loads((self.directory / "state" / "stacks" / "dev" / "state.json").read_text())
        assert "pending_operations" not in document["deployment"]
        return [r for r in document["deployment"]["resources"] if r["urn"].endswith("::one")]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


BOTH = """
def louder(args):
    return ResourceTransformResult({**args.props, "text": "LOUD"}, args.opts)

hook = ResourceHook("hook", lambda args: log(f"hook {args.name}"))
"""


def test_a_program_in_a_process_of_its_own_is_called_back(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from local.engine import cli, operations
    from local.engine.program.monitor import Monitor
    from local.engine.program.served import Served

    def run(program: Any, monitor: Monitor, on_line: Callable[[str], None]) -> str | None:
        served = Served(monitor)
        try:
            return run_in_subprocess(program, served.address, on_line)
        finally:
            served.close()

    monkeypatch.setattr(cli, "Options", partial(operations.Options, run_program=run))
    project.write(f"""{BOTH}
binding = ResourceHookBinding(before_create=[hook], after_create=[hook], before_delete=[hook])
File("one", ResourceOptions(hooks=binding, transforms=[louder]))
""")
    assert cli.main(project.arguments) == 0
    assert project.log == ["hook one", "create one", "hook one"]
    assert (project.directory / "objects" / "one").read_text() == "LOUD"

    project.write(BOTH)
    assert cli.main(project.arguments) == 0
    assert project.log[3:] == ["hook one", "delete one"]


def test_a_kill_9_between_a_hook_and_its_create_loses_nothing(project: Project) -> None:
    project.write("""
def kill(args):
    log("hook")
    if not (HERE / "killed").exists():
        (HERE / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)

File("one", ResourceOptions(hooks=ResourceHookBinding(before_create=[ResourceHook("kill", kill)])))
""")
    assert project.up().returncode == -signal.SIGKILL
    assert project.log == ["hook"]

    second = project.up()
    assert second.returncode == 0, second.stdout + second.stderr
    assert "interrupted while" not in second.stdout, "nothing had begun"
    assert project.log == ["hook", "hook", "create one"]
    assert [r["id"] for r in project.resources()] == ["one"]


def test_a_kill_9_between_a_create_and_the_hook_after_it_loses_nothing(project: Project) -> None:
    project.write("""
def kill(args):
    log("hook")
    os.kill(os.getpid(), signal.SIGKILL)

File("one", ResourceOptions(hooks=ResourceHookBinding(after_create=[ResourceHook("kill", kill)])))
""")
    assert project.up().returncode == -signal.SIGKILL
    second = project.up()
    assert second.returncode == 0, second.stdout + second.stderr
    assert project.log == ["create one", "hook"], "the step was done, and is not done again"
    assert [r["id"] for r in project.resources()] == ["one"]


def test_ctrl_c_while_a_hook_waits_lets_it_and_its_step_finish(project: Project) -> None:
    project.write("""
import asyncio, pulumi

async def wait(args):
    log("waiting")
    while not (HERE / "go").exists():
        await asyncio.sleep(0.02)

one = File("one", ResourceOptions(hooks=ResourceHookBinding(before_create=[ResourceHook("wait", wait)])))
File("two", ResourceOptions(depends_on=[one]))
""")
    output = project.directory / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(project.command, stdout=file, stderr=file, start_new_session=True)
    eventually(lambda: project.log == ["waiting"], "the hook waits")
    process.send_signal(signal.SIGINT)
    eventually(lambda: "interrupted" in output.read_text(), "it says that it was interrupted")
    (project.directory / "go").touch()

    assert process.wait(60) == 1
    assert project.log == ["waiting", "create one"]
    assert [r["id"] for r in project.resources()] == ["one"]

"""Stack `local` by Pulumi's own CLI, as `make up ENGINE=pulumi` runs it, and moved to the embedded engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from local.pulumi_cli import PulumiCli
from tests.e2e.local_stack import ROOT, LocalStack, answers, eventually

pytestmark = [
    pytest.mark.cli,
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("pulumi") is None, reason="there is no `pulumi` on PATH"),
    pytest.mark.timeout(1200),
]

WITH_CLI = ("--engine", "pulumi")


def pulumi(stack: LocalStack, *command: str) -> str:
    """A `pulumi stack` command on the stack that `python -m local` made."""
    cli = PulumiCli(ROOT, stack.name, stack.state / "stacks" / stack.name)
    call = [cli.require(), *command, "--stack", stack.name, "--cwd", str(cli.stack_dir)]
    done = subprocess.run(call, env=cli.environment(os.environ), capture_output=True, text=True, check=True)
    return done.stdout


def test_the_cli_runs_the_stack_and_the_engine_takes_it_over(empty_stack: LocalStack) -> None:
    stack = empty_stack
    stack.run("up", *WITH_CLI)
    url = json.loads(stack.run("status", "--json"))["outputs"]["webUrl"]
    eventually(lambda: answers(url), "the web workload answers")
    stack.run("up", *WITH_CLI, "--expect-no-changes")

    # The engine refuses it until it has been moved.
    stack.run("up", expect=1)
    export = stack.state / "export.json"
    export.write_text(pulumi(stack, "stack", "export"))
    stack.engine("stack", "import", "--file", str(export))
    pulumi(stack, "stack", "rm", "--force", "--yes", "--preserve-config")

    assert stack.changes("preview") == {}
    stack.run("down")

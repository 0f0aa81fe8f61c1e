"""Pulumi's CLI on a stack: command lines, environment, what its backend holds. Runs of it: test_language_host.py."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local.pulumi.backend import StateError, is_in_use, killed_creates, locks, masked_outputs
from local.pulumi.cli import PulumiCli, PulumiCliError
from local.pulumi.secrets import SecretsError, new_crypter
from local.pulumi.toolchain import Toolchain


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PulumiCli:
    for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)
    project = tmp_path / "project"
    (project / "stacks").mkdir(parents=True)
    (project / "Pulumi.yaml").write_text("name: cloud-controller\nruntime: python\nstackConfigDir: stacks\n")
    tools = Toolchain(tmp_path / "pulumi", {"PATH": "/cache:/usr/bin"})
    return PulumiCli(tools, project, "local", tmp_path / "state" / "stacks" / "local")


def test_what_only_shows_a_plan_gets_no_yes(cli: PulumiCli) -> None:
    assert "--yes" not in cli.operation("refresh", ["--preview-only"])


@pytest.mark.parametrize("command", ["up", "refresh", "destroy"])
def test_the_cli_gets_yes_without_a_terminal(cli: PulumiCli, command: str) -> None:
    assert "--yes" in cli.operation(command, [])


@pytest.mark.parametrize(("command", "asked"), [("up", True), ("refresh", False), ("destroy", True)])
def test_on_a_terminal_the_cli_asks_as_it_does(cli: PulumiCli, command: str, asked: bool) -> None:
    assert ("--yes" not in cli.operation(command, [], asks=True)) is asked


@pytest.mark.parametrize("command", ["up", "destroy"])
def test_the_cli_does_not_ask_in_json_output(cli: PulumiCli, command: str) -> None:
    assert "--yes" in cli.operation(command, ["--json"], asks=True)


def test_a_passphrase_from_the_user_takes_precedence(cli: PulumiCli, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)

    def given(**variables: str) -> dict[str, str]:
        environment = cli.environment(variables)
        return {name: value for name, value in environment.items() if "PASSPHRASE" in name}

    assert given(PULUMI_CONFIG_PASSPHRASE="") == {"PULUMI_CONFIG_PASSPHRASE": ""}
    # The CLI works in another folder than the user's shell.
    assert given(PULUMI_CONFIG_PASSPHRASE_FILE="mine") == {"PULUMI_CONFIG_PASSPHRASE_FILE": str(tmp_path / "mine")}


def write_cli_state(cli: PulumiCli, *resources: dict[str, Any], **more: Any) -> Path:
    path = cli.stack_dir / "pulumi" / ".pulumi" / "stacks" / "cloud-controller" / "local.json"
    path.parent.mkdir(parents=True)
    latest = {"manifest": {}, "resources": list(resources), **more} if resources else None
    path.write_text(json.dumps({"version": 3, "checkpoint": {"stack": "local", "latest": latest}}))
    return path


STACK = {
    "urn": "urn:pulumi:local::cloud-controller::pulumi:pulumi:Stack::cloud-controller-local",
    "custom": False,
    "type": "pulumi:pulumi:Stack",
    "outputs": {
        "webUrl": "http://127.35.0.10:8080/",
        "key": {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:a:b"},
    },
}


def test_the_outputs_of_a_stack_in_the_clis_state_are_read(cli: PulumiCli) -> None:
    assert not is_in_use(cli.stack_dir)
    write_cli_state(cli, STACK)
    assert is_in_use(cli.stack_dir)
    assert masked_outputs(cli.stack_dir) == {"webUrl": "http://127.35.0.10:8080/", "key": "[secret]"}


def test_an_empty_state_of_the_cli_holds_nothing(cli: PulumiCli) -> None:
    write_cli_state(cli)
    assert not is_in_use(cli.stack_dir)


def lock_file(cli: PulumiCli) -> Path:
    path = cli.stack_dir / "pulumi" / ".pulumi" / "locks" / "organization" / "cloud-controller" / "local" / "e46.json"
    path.parent.mkdir(parents=True)
    return path


def write_lock(cli: PulumiCli, pid: int, host: str = socket.gethostname()) -> None:
    """A lock as the CLI writes it, of that process."""
    lock = {"pid": pid, "username": "me", "hostname": host, "timestamp": "2026-11-22T12:30:02Z"}
    lock_file(cli).write_text(json.dumps(lock))


@pytest.fixture
def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.integration
def test_the_lock_of_a_run_that_was_killed_here_is_dead(cli: PulumiCli, ended_pid: int) -> None:
    write_lock(cli, ended_pid)

    assert [lock.alive for lock in locks(cli.stack_dir)] == [False]


# No process of this machine has the second one's number: it is above Linux's highest.
@pytest.mark.parametrize(
    ("pid", "host"), [(os.getpid(), socket.gethostname()), (4_194_305, "elsewhere")], ids=["here", "elsewhere"]
)
def test_a_lock_that_may_be_alive_is_an_error_with_its_removal(cli: PulumiCli, pid: int, host: str) -> None:
    write_lock(cli, pid, host)

    with pytest.raises(PulumiCliError) as caught, cli.alone():
        pytest.fail("it began")

    run = f"another run is changing stack local (process {pid} on {host}, since 2026-11-22T12:30:02Z)"
    assert str(caught.value).startswith(run)
    assert str(caught.value).endswith('make pulumi STACK=local ARGS="cancel --yes"')


def test_a_run_that_has_not_begun_yet_keeps_others_out(cli: PulumiCli) -> None:
    with cli.alone(), pytest.raises(PulumiCliError, match="another run is changing stack local"), cli.alone():
        pytest.fail("it began")


@pytest.mark.parametrize("operation", ["up", "destroy"])
def test_an_operation_is_left_to_the_command_that_has_the_site(cli: PulumiCli, operation: str) -> None:
    with pytest.raises(PulumiCliError, match="with the stack's site and program"):
        cli.command([operation], cli.stack_file)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": null, "hostname": "a", "timestamp": "b"}'])
def test_a_damaged_lock_is_an_error_that_names_its_file_and_the_remedy(cli: PulumiCli, text: str) -> None:
    (path := lock_file(cli)).write_text(text)

    with pytest.raises(StateError) as caught:
        list(locks(cli.stack_dir))

    assert str(caught.value).startswith(f"{path} is not a readable lock of the Pulumi CLI: ")
    assert "if no run changes stack local, remove the lock: make pulumi " in str(caught.value)


def test_a_lock_that_has_just_been_removed_is_ignored(cli: PulumiCli) -> None:
    lock_file(cli).symlink_to("gone")

    assert list(locks(cli.stack_dir)) == []


def test_only_creates_that_were_killed_are_left_to_people(cli: PulumiCli) -> None:
    killed = {"web": "creating", "echo": "updating", "other": "deleting"}
    pending = [{"resource": {"urn": f"urn:pulumi:local::p::t::{name}"}, "type": kind} for name, kind in killed.items()]
    write_cli_state(cli, STACK, pending_operations=pending)

    # The next `up` or `refresh` settles an update and a delete.
    assert killed_creates(cli.stack_dir) == ["web"]


@pytest.mark.integration
def test_a_wrong_passphrase_for_the_state_is_an_error_before_the_cli_is_called(
    cli: PulumiCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.pulumi.secrets.ITERATIONS", 10)
    monkeypatch.setattr("local.pulumi.kubernetes_provider.find", lambda *_: Path("/provider"))
    provider = {"type": "passphrase", "state": {"salt": new_crypter("right").salt}}
    state = write_cli_state(cli, STACK, secrets_providers=provider)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "wrong")

    with pytest.raises(
        SecretsError, match=f"{state}: the passphrase does not match .* PULUMI_CONFIG_PASSPHRASE: set it"
    ):
        cli.run("up", [], os.environ)


def test_the_state_of_an_earlier_releases_engine_is_refused(cli: PulumiCli) -> None:
    cli.stack_dir.mkdir(parents=True)
    (cli.stack_dir / "state.json").write_text("{}")

    with pytest.raises(PulumiCliError, match="is the state of a release before"):
        cli.run("up", [], os.environ)

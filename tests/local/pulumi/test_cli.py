"""Calls of Pulumi's CLI: command lines and environment.

Where a test runs something, a script called `pulumi` replaces the CLI: it records its arguments, and a destroy empties
the state. test_real_pulumi.py tests the calls of the real one.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local.engine.stack.secrets import SecretsError, new_crypter
from local.engine.stack.state import StateError
from local.engine_run import DELETE_UNMANAGED
from local.pulumi_backend import ways_past_locks
from local.pulumi_cli import PulumiCli, PulumiCliError
from local.stack_state import is_in_cli, is_in_engine, is_in_use, masked_outputs

import local.__main__ as command_line
from local.mycloud.site import Site

STAND_IN = """#!{python}
import json, os, pathlib, sys, urllib.parse
names = ("PATH", "PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE", "KEPT")
names += ({unmanaged!r},)
call = {{"argv": sys.argv[1:], "environment": {{name: os.environ[name] for name in names if name in os.environ}}}}
with open({log!r}, "a") as log:
    log.write(json.dumps(call) + "\\n")
if "destroy" in sys.argv:
    state = urllib.parse.urlparse(os.environ["PULUMI_BACKEND_URL"]).path
    for path in pathlib.Path(state).rglob("*.json"):
        path.write_text('{{"version": 3, "checkpoint": {{"latest": null}}}}')
sys.exit(int(os.environ.get("FAILS_AT", "-") in sys.argv))
"""


class StandIn:
    """A script with the CLI's name, first on PATH."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._log = directory / "calls"
        script = directory / "bin" / "pulumi"
        script.parent.mkdir()
        script.write_text(STAND_IN.format(python=sys.executable, log=str(self._log), unmanaged=DELETE_UNMANAGED))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
        for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"):
            monkeypatch.delenv(name, raising=False)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return StandIn(tmp_path, monkeypatch)


@pytest.fixture
def cli(tmp_path: Path) -> PulumiCli:
    project = tmp_path / "project"
    (project / "stacks").mkdir(parents=True)
    (project / "Pulumi.yaml").write_text("name: cloud-controller\nruntime: python\nstackConfigDir: stacks\n")
    return PulumiCli(project, "local", tmp_path / "state" / "stacks" / "local")


def test_an_operation_names_stack_program_and_the_copy_of_the_stack_file(cli: PulumiCli) -> None:
    assert cli.operation("preview", ["--policy-pack", "policy", "--json"]) == [
        *("preview", "--stack", "local", "--cwd", str(cli.project)),
        *("--config-file", str(cli.stack_dir / "Pulumi.local.yaml")),
        *("--policy-pack", "policy", "--json"),
    ]


@pytest.mark.parametrize("command", ["up", "refresh", "destroy"])
def test_the_cli_gets_yes_without_a_terminal(cli: PulumiCli, command: str) -> None:
    assert "--yes" in cli.operation(command, [])


@pytest.mark.parametrize(("command", "asked"), [("up", True), ("refresh", False), ("destroy", True)])
def test_on_a_terminal_the_cli_asks_as_it_does(cli: PulumiCli, command: str, asked: bool) -> None:
    assert ("--yes" not in cli.operation(command, [], asks=True)) is asked


@pytest.mark.parametrize("command", ["up", "destroy"])
def test_the_cli_does_not_ask_in_json_output(cli: PulumiCli, command: str) -> None:
    assert "--yes" in cli.operation(command, ["--json"], asks=True)


def test_the_cli_stack_is_created_in_its_own_folder_without_writing_to_the_project(cli: PulumiCli) -> None:
    call = cli.init()
    assert call[:4] == ["stack", "select", "local", "--create"]
    assert call[call.index("--cwd") + 1] == str(cli.stack_dir)


def test_the_cli_gets_the_stacks_backend_and_passphrase_and_this_python_first(cli: PulumiCli) -> None:
    environment = cli.environment({"PATH": "/usr/bin", "KEPT": "yes"})
    assert environment["PATH"] == f"{Path(sys.executable).parent}{os.pathsep}/usr/bin"
    assert environment["PULUMI_BACKEND_URL"] == (cli.stack_dir / "pulumi").as_uri()
    assert environment["PULUMI_CONFIG_PASSPHRASE_FILE"] == str(cli.stack_dir / "passphrase")
    assert environment["KEPT"] == "yes"


def test_a_passphrase_from_the_user_takes_precedence(cli: PulumiCli, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)

    def given(**variables: str) -> dict[str, str]:
        environment = cli.environment(variables)
        return {name: value for name, value in environment.items() if "PASSPHRASE" in name}

    assert given(PULUMI_CONFIG_PASSPHRASE="") == {"PULUMI_CONFIG_PASSPHRASE": ""}
    # The CLI works in another folder than the user's shell.
    assert given(PULUMI_CONFIG_PASSPHRASE_FILE="mine") == {"PULUMI_CONFIG_PASSPHRASE_FILE": str(tmp_path / "mine")}


@pytest.mark.integration
def test_a_run_creates_the_stack_before_the_operation(cli: PulumiCli, stand_in: StandIn) -> None:
    assert cli.run("up", ["--diff"])

    made, done = stand_in.calls
    assert made["argv"] == cli.init() and done["argv"] == cli.operation("up", ["--diff"])
    assert done["environment"]["PULUMI_BACKEND_URL"] == (cli.stack_dir / "pulumi").as_uri()
    assert (cli.stack_dir / "pulumi").is_dir()
    assert "name: cloud-controller" in (cli.stack_dir / "Pulumi.yaml").read_text()


@pytest.mark.integration
def test_a_failed_operation_is_returned_and_a_failed_stack_creation_raised(
    cli: PulumiCli, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS_AT", "up")
    assert not cli.run("up", [])
    monkeypatch.setenv("FAILS_AT", "select")
    with pytest.raises(PulumiCliError, match="could not create stack 'local'"):
        cli.run("up", [])
    assert [call["argv"][0] for call in stand_in.calls] == ["stack", "up", "stack"]


def test_a_missing_cli_is_a_clear_error(cli: PulumiCli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(cli.project))
    with pytest.raises(PulumiCliError, match="the Pulumi CLI is not on PATH"):
        cli.run("up", [])


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
    assert is_in_use(cli.stack_dir) and is_in_cli(cli.stack_dir) and not is_in_engine(cli.stack_dir)
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
@pytest.mark.usefixtures("stand_in")
def test_the_lock_of_a_killed_run_is_reported_with_the_command_that_removes_it(
    cli: PulumiCli, ended_pid: int, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lock(cli, ended_pid)

    cli.run("up", [])

    reported = capsys.readouterr().err
    assert f"a run of stack local was killed (process {ended_pid} on " in reported
    environment = f"PULUMI_BACKEND_URL={(cli.stack_dir / 'pulumi').as_uri()} PULUMI_CONFIG_PASSPHRASE_FILE="
    assert environment in reported and f"pulumi cancel --yes --stack local --cwd {cli.stack_dir}" in reported


@pytest.mark.integration
@pytest.mark.parametrize("variable", ["PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"])
@pytest.mark.usefixtures("stand_in")
def test_the_command_that_removes_a_lock_keeps_the_users_passphrase(
    cli: PulumiCli, ended_pid: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str
) -> None:
    write_lock(cli, ended_pid)
    monkeypatch.setenv(variable, "mine")

    cli.run("up", [])

    reported = capsys.readouterr().err
    assert "pulumi cancel --yes" in reported and "PASSPHRASE" not in reported


@pytest.mark.integration
@pytest.mark.parametrize(("host", "way_out"), [(socket.gethostname(), False), ("elsewhere", True)])
@pytest.mark.usefixtures("stand_in")
def test_a_lock_that_may_be_alive_is_reported_with_a_removal_only_for_other_machines(
    cli: PulumiCli, capsys: pytest.CaptureFixture[str], host: str, way_out: bool
) -> None:
    write_lock(cli, os.getpid(), host)

    cli.run("up", [])

    reported = capsys.readouterr().err
    assert (
        f"another run is changing stack local (process {os.getpid()} on {host}, since 2026-11-22T12:30:02Z)" in reported
    )
    assert ("; if that machine or process is gone, remove its lock: PULUMI_BACKEND_URL=" in reported) is way_out
    assert ("pulumi cancel --yes --stack local" in reported) is way_out


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": null, "hostname": "a", "timestamp": "b"}'])
def test_a_damaged_lock_is_an_error_that_names_its_file_and_the_remedy(cli: PulumiCli, text: str) -> None:
    (path := lock_file(cli)).write_text(text)

    with pytest.raises(StateError) as caught:
        list(ways_past_locks(cli.stack_dir))

    assert str(caught.value).startswith(f"{path} is not a readable lock of the Pulumi CLI: ")
    assert "if no run changes stack local, remove the lock: PULUMI_BACKEND_URL=" in str(caught.value)


def test_a_lock_that_has_just_been_removed_is_ignored(cli: PulumiCli) -> None:
    lock_file(cli).symlink_to("gone")

    assert list(ways_past_locks(cli.stack_dir)) == []


@pytest.mark.integration
@pytest.mark.usefixtures("stand_in")
def test_a_killed_create_is_reported_with_the_command_that_clears_it(
    cli: PulumiCli, capsys: pytest.CaptureFixture[str]
) -> None:
    pending = [{"resource": {"urn": f"urn:pulumi:local::p::t::{name}"}, "type": kind} for name, kind in KILLED.items()]
    write_cli_state(cli, STACK, pending_operations=pending)

    cli.run("preview", [])

    reported = capsys.readouterr().err
    assert "killed while it created web: `up` creates it again" in reported
    assert 'make refresh STACK=local ENGINE=pulumi ARGS="--skip-preview --clear-pending-creates"' in reported
    assert "echo" not in reported, "the CLI's next up or refresh settles an update and a delete"


@pytest.mark.integration
def test_a_lock_of_the_cli_is_reported_before_anything_is_started(
    local: Local, stand_in: StandIn, ended_pid: int, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lock(local.cli, ended_pid)

    assert local.run("up", "--engine", "pulumi") == 1

    assert "pulumi cancel --yes --stack local" in capsys.readouterr().err
    assert (local.started, stand_in.calls) == ([], [])


KILLED = {"web": "creating", "echo": "updating", "other": "deleting"}


@pytest.mark.integration
@pytest.mark.usefixtures("stand_in")
def test_without_locks_and_pending_creates_nothing_is_reported(
    cli: PulumiCli, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cli_state(cli, STACK)

    cli.run("up", [])

    assert capsys.readouterr().err == ""


@pytest.mark.integration
def test_a_wrong_passphrase_for_the_clis_state_is_an_error_before_the_cli_is_called(
    cli: PulumiCli, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.engine.stack.secrets.ITERATIONS", 10)
    provider = {"type": "passphrase", "state": {"salt": new_crypter("right").salt}}
    state = write_cli_state(cli, STACK, secrets_providers=provider)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "wrong")

    with pytest.raises(
        SecretsError, match=f"{state}: the passphrase does not match .* PULUMI_CONFIG_PASSPHRASE: set it"
    ):
        cli.run("up", [])
    assert stand_in.calls == []

    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "right")
    assert cli.run("up", [])


class Local:
    """`python -m local` on a project of its own, with a site that starts nothing."""

    def __init__(self, cli: PulumiCli, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cli = cli
        self.started: list[str] = []
        (cli.project / "stacks" / "Pulumi.local.yaml").write_text("config:\n  cloud-controller:cloud: mycloud\n")
        monkeypatch.setattr(command_line, "PROJECT", cli.project)
        monkeypatch.setattr("local.commands.ensure_binaries", lambda _: None)
        monkeypatch.setattr(Site, "up", lambda site, _tell: self._up(site))
        monkeypatch.setattr(Site, "endpoint", "http://127.32.0.1:7070")
        monkeypatch.setattr(Site, "token", "site-token")
        for name in ("wait_settled", "boot_crashed_machines", "end_simulated_machines"):
            monkeypatch.setattr(Site, name, lambda *_: None)
        monkeypatch.setattr(Site, "down", lambda *_, **__: self.started.append("down"))
        monkeypatch.setattr(Site, "controllers_token", lambda _: ("controllers", "2999-12-31"))
        monkeypatch.setattr(Site, "crashed_machines", lambda _: [])
        monkeypatch.setattr(Site, "wait_answering", lambda *_: True)
        monkeypatch.setattr(Site, "status", lambda _: {"up": True, "load_balancers": []})

    def _up(self, site: Site) -> None:
        self.started.append("up")
        site.folder.root.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments: str) -> int:
        return command_line.main([*arguments, "--state", str(self.cli.stack_dir.parents[1])])


@pytest.fixture
def local(cli: PulumiCli, monkeypatch: pytest.MonkeyPatch) -> Iterator[Local]:
    """The command line changes the umask of its process, which is the other tests' too."""
    before = os.umask(0o022)
    yield Local(cli, monkeypatch)
    os.umask(before)


@pytest.mark.integration
@pytest.mark.parametrize(("command", "called"), [("up", "up"), ("preview", "preview"), ("refresh", "refresh")])
def test_the_cli_runs_after_the_site_is_up(local: Local, stand_in: StandIn, command: str, called: str) -> None:
    assert local.run(command, "--engine", "pulumi", "--diff") == 0

    argv = stand_in.calls[-1]["argv"]
    assert local.started == ["up"] and argv[0] == called and "--diff" in argv
    assert ("--policy-pack" in argv) == (command != "refresh")
    copy = (local.cli.stack_dir / "Pulumi.local.yaml").read_text()
    assert "encryptionsalt" in copy and "site-token" not in copy
    assert "encryptionsalt" not in (local.cli.project / "stacks" / "Pulumi.local.yaml").read_text()


@pytest.mark.integration
def test_down_destroys_the_stack_that_the_cli_holds_then_stops_the_site(local: Local, stand_in: StandIn) -> None:
    write_cli_state(local.cli, STACK)
    assert local.run("down", "--engine", "pulumi") == 0
    assert stand_in.calls[-1]["argv"][0] == "destroy" and local.started == ["up", "down"]
    assert not is_in_use(local.cli.stack_dir)


@pytest.mark.integration
@pytest.mark.parametrize("options", [[], ["--delete-unmanaged"]])
def test_the_destroy_guard_under_the_cli_gets_the_request_to_delete_undeclared_objects(
    local: Local, stand_in: StandIn, options: list[str]
) -> None:
    write_cli_state(local.cli, STACK)

    assert local.run("down", "--engine", "pulumi", *options) == 0

    assert stand_in.calls[-1]["environment"].get(DELETE_UNMANAGED) == ("true" if options else None)


@pytest.mark.integration
def test_a_run_that_fails_in_the_cli_is_code_1(
    local: Local, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS_AT", "up")
    assert local.run("up", "--engine", "pulumi") == 1
    assert len(stand_in.calls) == 2


def test_a_missing_cli_is_an_error_before_anything_is_started(
    local: Local, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(local.cli.project))
    assert local.run("up", "--engine", "pulumi") == 1
    assert "the Pulumi CLI is not on PATH" in capsys.readouterr().err and local.started == []


def test_a_stack_in_the_other_engines_state_is_refused(
    local: Local, stand_in: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cli_state(local.cli, STACK)
    assert local.run("up") == 1
    assert "is in the Pulumi CLI's state: run it with ENGINE=pulumi" in capsys.readouterr().err

    (local.cli.stack_dir / "state.json").write_text(json.dumps({"version": 3, "deployment": {"resources": [STACK]}}))
    assert local.run("up", "--engine", "pulumi") == 1
    assert "is in the embedded engine's state: run it without ENGINE=pulumi" in capsys.readouterr().err
    assert (local.cli.stack_dir / "Pulumi.yaml").exists(), "the place that `pulumi stack import` works in"
    assert local.started == [] and stand_in.calls == []

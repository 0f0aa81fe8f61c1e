"""`python -m local.engine` with a real program and the real dynamic provider: output, exit codes, clear errors."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest

from local.engine.cli import main
from local.engine.program import runner
from local.engine.program.runner import Raised, run_in_subprocess
from local.engine.stack.lock import StackLock
from local.engine.stack.secrets import open_crypter
from local.plugins.plugin_process import PluginProcess
from tests.local.engine.engine_event_schema import ENGINE_EVENT
from tests.local.engine.recordings import PASSPHRASE, SALT

PROVIDER = '''
from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult


class Refused(Exception):
    """The cloud said no."""


class NoteProvider(ResourceProvider):
    def configure(self, req):
        self.token = req.config.get("token")

    def check(self, olds, news):
        print("checking", flush=True)
        failures = [CheckFailure("text", "must not be empty")] if news.get("text") == "" else []
        return CheckResult(news, failures)

    def diff(self, id, olds, news):
        return DiffResult(changes=olds.get("text") != news.get("text"))

    def create(self, props):
        if props["text"] == "refuse":
            raise Refused("quota exceeded: 3 of 3 notes")
        return CreateResult("n-1", {**props, "seen": self.token})

    def update(self, id, olds, news):
        return UpdateResult({**news, "seen": self.token})


class Note(Resource, module="notes", name="Note"):
    def __init__(self, name, text, opts=None):
        super().__init__(NoteProvider(), name, {"text": text, "seen": None}, opts)
'''
PROGRAM = """
import pulumi
from command_line_notes import Note

config = pulumi.Config()
print("hello from the program")
note = Note("note", config.require("text"), pulumi.ResourceOptions(additional_secret_outputs=["seen"]))
pulumi.export("id", note.id)
pulumi.export("seen", note.seen)
"""
FORGETFUL_PROGRAM = """
import asyncio
import pulumi

async def fails():
    raise LookupError("forgotten")

async def forgets():
    await asyncio.wait([asyncio.ensure_future(fails())])

pulumi.export("done", pulumi.Output.from_input(forgets()))
"""
SCHEMA = "config:\n  text: {type: string, default: hello}\n  token: {type: string, default: none}\n"


class Project:
    """A project in a folder, and the command line on it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "Pulumi.yaml").write_text("name: notes\nruntime: python\n" + SCHEMA)
        (directory / "command_line_notes.py").write_text(PROVIDER)
        (directory / "__main__.py").write_text(PROGRAM)
        token = open_crypter(PASSPHRASE, SALT).encrypt("hunter2")
        self.configure(f"  notes:token: {{secure: '{token}'}}\n")

    def configure(self, text: str, *, salt: str = SALT) -> None:
        salted = f"encryptionsalt: {salt}\n" if salt else ""
        (self.directory / "Pulumi.dev.yaml").write_text(f"{salted}config:\n" + (text or "  {}\n"))

    def run(self, *arguments: str) -> tuple[int, str]:
        out = io.StringIO()
        where = ["--stack", "dev", "--cwd", str(self.directory), "--state", str(self.directory / "state")]
        sys.modules.pop("command_line_notes", None)
        return main([*arguments, *where], out), out.getvalue()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    for variable in ("GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(variable, raising=False)
    yield Project(tmp_path)
    sys.modules.pop("command_line_notes", None)


@pytest.mark.engine
def test_the_life_of_a_stack(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    # Neither salt nor passphrase: the engine creates its own.
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    project.configure("", salt="")
    code, shown = project.run("preview")
    assert code == 0 and "+ 2 to create" in shown and "hello from the program" in shown and "checking" in shown
    assert not (project.directory / "state").exists()
    assert project.run("config", "set", "--secret", "token", "hunter2") == (0, "")

    code, shown = project.run("up", "--yes")
    assert code == 0 and "pulumi-python:dynamic/notes:Note note created (" in shown and "hunter2" not in shown
    files = [p for p in (project.directory / "state").rglob("*") if p.is_file()]
    assert {p.name for p in files} == {"state.json", "state.json.bak", "passphrase"}
    assert all(p.stat().st_mode & 0o077 == 0 for p in files), "only their owner may read them"
    assert not any("hunter2" in p.read_text() for p in files)

    assert project.run("stack", "output", "id") == (0, "n-1\n")
    assert json.loads(project.run("stack", "output", "--json")[1]) == {"id": "n-1", "seen": "[secret]"}
    assert project.run("stack", "output", "seen", "--show-secrets") == (0, "hunter2\n")
    assert json.loads(project.run("stack", "export")[1])["version"] == 3

    assert project.run("config", "set", "text", "other") == (0, "")
    code, shown = project.run("preview")
    assert code == 0 and '      ~ text: "hello" => "other"' in shown and "~ 1 to update" in shown
    code, shown = project.run("destroy")
    assert code == 0 and "- 2 deleted" in shown
    assert project.run("stack", "output") == (0, "")


@pytest.mark.engine
def test_json_output_is_one_engine_event_per_line(project: Project) -> None:
    code, shown = project.run("preview", "--json")
    events: list[dict[str, Any]] = [json.loads(line) for line in shown.splitlines()]
    assert code == 0 and [e["sequence"] for e in events] == list(range(len(events)))
    assert "preludeEvent" in events[0] and events[-2]["summaryEvent"]["resourceChanges"] == {"create": 2}
    assert events[-1]["cancelEvent"] == {}
    assert events[0]["preludeEvent"]["config"]["notes:token"] == "[secret]" and "hunter2" not in shown


@pytest.mark.engine
def test_a_providers_late_output_is_shown_before_the_summary(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    follow = PluginProcess._follow

    def late(process: PluginProcess, stream: IO[str]) -> None:
        with stream:
            text = stream.read()  # up to the server's end
        follow(process, io.StringIO(text))

    monkeypatch.setattr(PluginProcess, "_follow", late)
    _, shown = project.run("preview", "--json")
    events = [json.loads(line) for line in shown.splitlines()]
    assert [e["diagnosticEvent"]["message"] for e in events if "diagnosticEvent" in e][-1] == "checking\n"
    assert "summaryEvent" in events[-2]


@pytest.mark.engine
def test_every_command_can_write_pulumis_engine_events(project: Project) -> None:
    kinds = {"preludeEvent", "resourcePreEvent", "resOutputsEvent", "summaryEvent", "cancelEvent"}
    for command in ("preview", "up", "refresh", "destroy"):
        code, shown = project.run(command, "--json")
        events = [json.loads(line) for line in shown.splitlines()]
        for event in events:
            ENGINE_EVENT.validate(event)
        told = {kind for event in events for kind in event} - {"sequence", "timestamp", "diagnosticEvent"}
        assert (code, told) == (0, kinds)
        assert "hunter2" not in shown


def test_an_error_before_the_run_is_an_event_too(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    (project.directory / "Pulumi.dev.yaml").write_text("config: [no mapping")
    code, shown = project.run("up", "--json")
    told, ended = [json.loads(line) for line in shown.splitlines()]
    ENGINE_EVENT.validate(told)
    assert code == 1 and "Pulumi.dev.yaml" in told["diagnosticEvent"]["message"] and "cancelEvent" in ended
    assert capsys.readouterr().err == ""


@pytest.mark.engine
def test_an_exception_in_a_provider_is_one_line_with_its_type(project: Project) -> None:
    project.configure("  notes:text: refuse\n")
    code, shown = project.run("up")
    assert code == 1 and shown.count("Refused: quota exceeded: 3 of 3 notes") == 1
    assert "Traceback" not in shown and "Note note failed" in shown


@pytest.mark.engine
def test_a_check_failure_names_resource_and_property(project: Project) -> None:
    project.configure('  notes:text: ""\n')
    code, shown = project.run("preview")
    about = "pulumi-python:dynamic/notes:Note (note) at __main__.py:7:"
    assert code == 1 and f"{about}\n    error: text: must not be empty\n" in shown


@pytest.mark.engine
def test_github_logs_mark_a_check_failure_where_the_program_registers_the_resource(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.directory.parent))
    project.configure('  notes:text: ""\n')
    _, shown = project.run("preview")
    where = 1 + PROGRAM.splitlines().index(next(text for text in PROGRAM.splitlines() if "note = Note(" in text))
    file = f"{project.directory.name}/__main__.py"
    assert f"\n::error file={file},line={where},title=note::text: must not be empty\n" in shown


@pytest.mark.engine
def test_a_config_error_of_the_program_is_its_message_alone(project: Project) -> None:
    (project.directory / "__main__.py").write_text("import pulumi\npulumi.Config().require('missing')\n")
    code, shown = project.run("preview")
    assert code == 1 and "Missing required configuration variable 'notes:missing'" in shown and "Traceback" not in shown


@pytest.mark.engine
@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("fails(1)\n", "        __main__.py:5 in <module>\n        __main__.py:4 in fails\n"),
        # asyncio drops the traceback of an exception that is raised a second time.
        ("pulumi.export('x', pulumi.Output.from_input(1).apply(fails))\n", "        __main__.py:4 in fails\n"),
        ("Note('n', pulumi.Output.from_input(1).apply(fails))\n", "        __main__.py:4 in fails\n"),
    ],
)
def test_an_exception_of_the_program_is_shown_with_only_its_own_lines(
    project: Project, program: str, told: str
) -> None:
    imports = "import pulumi\nfrom command_line_notes import Note\ndef fails(_):\n    return [][1]\n"
    (project.directory / "__main__.py").write_text(imports + program)
    code, shown = project.run("preview")
    assert code == 1 and f"IndexError: list index out of range\n{told}" in shown
    assert "Traceback" not in shown and "site-packages" not in shown


@pytest.mark.engine
def test_asyncio_reports_an_exception_of_a_task_that_is_never_awaited(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    (project.directory / "__main__.py").write_text(FORGETFUL_PROGRAM)

    assert project.run("preview")[0] == 0

    assert "Task exception was never retrieved" in caplog.text and "LookupError: forgotten" in caplog.text


@pytest.mark.engine
def test_the_engines_lines_are_not_shown_for_a_project_that_contains_the_engine(tmp_path: Path) -> None:
    raised = Raised(Path(runner.__file__).parents[3])
    try:
        runner._execute(lambda: [][1], tmp_path)
    except IndexError as error:
        lines = raised.lines(error)
    assert [line.partition(":")[0].strip() for line in lines] == ["tests/local/engine/test_command_line.py"] * 2


@pytest.mark.engine
def test_a_project_without_a_program_is_a_clear_error(project: Project) -> None:
    (project.directory / "__main__.py").unlink()
    code, shown = project.run("preview")
    assert code == 1 and f"there is no program: {project.directory}/__main__.py does not exist" in shown


@pytest.mark.engine
def test_a_duplicate_urn_is_an_error_with_both_lines(project: Project) -> None:
    (project.directory / "__main__.py").write_text(
        "from command_line_notes import Note\nNote('n', 'a')\nNote('n', 'b')\n"
    )
    code, shown = project.run("preview")
    assert code == 1 and "Note (n) at __main__.py:3:" in shown and "the other one is at __main__.py:2" in shown


@pytest.mark.engine
def test_the_reason_is_shown_for_a_program_with_hooks_that_fails_at_once(tmp_path: Path) -> None:
    """In a process of its own: gRPC ended it with a segmentation fault."""
    (tmp_path / "Pulumi.yaml").write_text("name: hooks\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    (tmp_path / "__main__.py").write_text(
        "import pulumi\n"
        "hooks = pulumi.ResourceHookBinding(before_update=[pulumi.ResourceHook('hook', lambda args: None)])\n"
        "class Part(pulumi.ComponentResource):\n"
        "    def __init__(self, name, args, opts):\n"
        "        super().__init__('a:b:Part', name, args, opts)\n"
        "bad = pulumi.Output.from_input(1).apply(lambda _: [][1])\n"
        "Part('x', {'a': bad}, pulumi.ResourceOptions(hooks=hooks))\n"
    )
    command = [sys.executable, "-m", "local.engine", "preview", "--stack", "dev", "--state", str(tmp_path / "state")]
    environment = {**os.environ, "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}
    done = subprocess.run(
        [*command, "--cwd", str(tmp_path)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 1 and "IndexError: list index out of range" in done.stdout


@pytest.mark.engine
def test_standard_error_of_the_program_is_shown_once(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    (project.directory / "__main__.py").write_text(
        "import sys\nprint('a word', file=sys.stderr)\nprint('no end', end='')\n"
    )
    code, shown = project.run("up")
    assert code == 0 and shown.count("a word") == shown.count("no end") == 1
    assert capfd.readouterr().err == ""


def test_a_run_ended_at_once_by_ctrl_c_is_one_line_and_code_8(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("local.engine.operations.open_session", interrupted)
    code, _ = project.run("refresh")
    assert code == 8 and capsys.readouterr().err == "error: interrupted; the next run continues from here\n"


@pytest.mark.integration
def test_a_program_in_a_process_of_its_own_does_the_same_over_grpc(project: Project, monkeypatch: Any) -> None:
    from local.engine import operations
    from local.engine.program.monitor import Monitor
    from local.engine.program.served import Served

    def run(program: Any, monitor: Monitor, on_line: Any, body: Any = None) -> str | None:
        del body
        served = Served(monitor)
        try:
            return run_in_subprocess(program, served.address, on_line)
        finally:
            served.close()

    monkeypatch.setattr("local.engine.cli.Options", partial(operations.Options, run_program=run))

    code, shown = project.run("up")
    assert code == 0 and "+ 2 created" in shown and "hello from the program" in shown
    project.configure("  notes:text: refuse\n")
    (project.directory / "__main__.py").write_text(PROGRAM.replace('Note("note"', 'Note("second"'))
    code, shown = project.run("up")
    assert code == 1 and "Refused: quota exceeded" in shown


def test_an_invalid_config_value_is_code_1_and_creates_no_state(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.configure("  notes:text: [x]\n")
    assert project.run("up")[0] == 1
    assert "Stack 'dev' with configuration key 'text' must be of type 'string'" in capsys.readouterr().err
    assert not (project.directory / "state" / "stacks" / "dev" / "state.json").exists()


def test_the_error_for_a_missing_passphrase_names_the_places_for_it(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    assert project.run("preview")[0] == 1
    told = capsys.readouterr().err
    assert "PULUMI_CONFIG_PASSPHRASE" in told and "--placeholder-secrets" in told

    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "wrong")
    assert project.run("preview")[0] == 1
    told = capsys.readouterr().err
    assert "Pulumi.dev.yaml: the passphrase does not match its secrets" in told
    assert "it comes from PULUMI_CONFIG_PASSPHRASE: set it to" in told


def test_secure_values_without_a_salt_are_named_with_their_file_and_nothing_is_written(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    project.configure("  notes:token: {secure: 'v1:a:b'}\n", salt="")

    assert project.run("up")[0] == 1

    assert f"{project.directory}/Pulumi.dev.yaml has secure values but no encryptionsalt" in capsys.readouterr().err
    assert not (project.directory / "state").exists()


@pytest.mark.integration
@pytest.mark.parametrize("file", ["Pulumi.yaml", "Pulumi.dev.yaml"])
def test_a_file_that_is_not_text_ends_a_call_with_one_line(project: Project, file: str) -> None:
    (project.directory / file).write_bytes(b"name: \xff\n")
    call = [sys.executable, "-m", "local.engine", "preview", "--stack", "dev", "--cwd", str(project.directory)]

    ended = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 1 and ended.stderr == f"error: {project.directory}/{file} is not UTF-8 text\n"


@pytest.mark.engine
def test_a_preview_with_placeholder_secrets_needs_no_passphrase(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    project.configure("  notes:token: {secure: 'v1:unreadable:here'}\n")
    code, shown = project.run("preview", "--placeholder-secrets")
    assert code == 0 and "+ 2 to create" in shown


def test_a_damaged_state_is_an_error_that_names_the_file(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    state = project.directory / "state" / "stacks" / "dev"
    state.mkdir(parents=True)
    (state / "state.json").write_text('{"version": 3}')
    assert project.run("up")[0] == 1
    assert "state.json" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", '{"version": 3, "depl'])
def test_a_truncated_state_is_reported_as_damaged_and_stays_as_it_is(
    project: Project, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    state = project.directory / "state" / "stacks" / "dev"
    state.mkdir(parents=True)
    (state / "state.json").write_text(content)
    assert project.run("destroy")[0] == 1
    assert "state.json is damaged" in capsys.readouterr().err
    assert (state / "state.json").read_text() == content


@pytest.mark.parametrize("arguments", [["fly", "-s", "dev"], ["up"], ["stack", "-s", "dev"]])
def test_invalid_arguments_are_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    [line] = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and line.endswith("--help)")


@pytest.mark.parametrize("name", ["../prod", "..", "a/b", "", "two words", "x" * 101, "umlaut-ä"])
def test_a_stack_name_cannot_lead_out_of_the_state_folder(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["up", "--stack", name])
    assert ended.value.code == 2 and "is not a valid stack name" in capsys.readouterr().err


def test_the_number_of_policy_configs_must_match_the_packs(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = project.run("up", "--policy-pack", "a", "--policy-pack", "b", "--policy-pack-config", "x.json")
    assert code == 1 and "must match" in capsys.readouterr().err


@pytest.mark.engine
def test_a_policy_pack_that_does_not_start_fails_the_run_with_its_reason(project: Project) -> None:
    code, shown = project.run("up", "--policy-pack", str(project.directory / "nowhere"))
    assert code == 1 and "nowhere is not a policy pack" in shown and "created" not in shown


def only(name: str) -> str:
    return f"urn:pulumi:dev::notes::pulumi-python:dynamic/notes:Note::{name}"


@pytest.mark.engine
def test_unexpected_changes_are_code_7(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.run("preview", "--expect-no-changes")[0] == 7
    assert "no changes were expected but changes were proposed" in capsys.readouterr().err
    assert project.run("up", "--expect-no-changes")[0] == 7
    assert "no changes were expected but changes occurred" in capsys.readouterr().err
    assert project.run("up", "--expect-no-changes", "--refresh")[0] == 0
    assert project.run("refresh", "--expect-no-changes", "--preview-only")[0] == 0


@pytest.mark.engine
def test_a_stack_can_be_created_and_destroyed_in_parts(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    (project.directory / "__main__.py").write_text(
        PROGRAM.replace("pulumi.export", "Note('other', 'x')\npulumi.export", 1)
    )
    assert project.run("up", "--target", only("not"))[0] == 1
    capsys.readouterr()
    code, shown = project.run("up", "--target", only("note"), "--parallel", "1")
    assert code == 0 and "other" not in shown
    assert project.run("up")[0] == 0
    code, shown = project.run("preview", "--target-replace", only("other"))
    assert code == 0 and "1 to replace" in shown
    code, shown = project.run("destroy", "--preview-only")
    assert code == 0 and "to delete" in shown
    assert project.run("destroy", "-t", "**::note")[0] == 0
    assert json.loads(project.run("stack", "export")[1])["deployment"]["resources"][-1]["urn"].endswith("other")
    assert project.run("destroy", "--exclude-protected", "--continue-on-error")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["up", "--parallel", "0"], "'0' is not a whole number of at least 1"),
        (["up", "--parallel", "many"], "'many' is not a whole number of at least 1"),
        (["preview", "--target-dependents"], "needs a --target"),
        (["destroy", "--target", "x", "--exclude-protected"], "cannot be combined"),
        (["refresh", "--preview-only", "--clear-pending-creates"], "changes the state"),
        (["refresh", "--replace", "x"], "unknown option --replace"),
        (["destroy", "--expect-no-changes"], "unknown option --expect-no-changes"),
        (["up", "--targ", "x"], "unknown option --targ; did you mean --target?"),
    ],
)
def test_conflicting_options_are_code_2(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "-s", "dev"])
    assert ended.value.code == 2 and why in capsys.readouterr().err


def test_cancel_removes_only_the_lock_of_a_dead_run(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    stack_dir = project.directory / "state" / "stacks" / "dev"
    lock = stack_dir / "lock.json"
    assert project.run("cancel") == (0, "no run holds the lock of stack dev: there is nothing to cancel\n")

    with StackLock(stack_dir):
        assert project.run("cancel")[0] == 1
        told = capsys.readouterr().err
        assert f"process {os.getpid()}" in told and "Ctrl-C" in told and lock.exists()

    lock.write_text(json.dumps({"pid": os.getpid()}))
    code, shown = project.run("cancel")
    assert code == 0 and f"process {os.getpid()}" in shown and not lock.exists()


@pytest.mark.engine
@pytest.mark.parametrize("command", ["up", "refresh", "destroy"])
def test_a_run_on_a_locked_stack_fails_before_its_program_runs(
    project: Project, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (project.directory / "__main__.py").write_text("open('ran', 'w').close()")

    with StackLock(project.directory / "state" / "stacks" / "dev", "up"):
        assert project.run(command)[0] == 1

    assert f"another run (process {os.getpid()}: `up` since " in capsys.readouterr().err
    assert not (project.directory / "ran").exists()


@pytest.mark.integration
def test_the_stacks_of_a_folder_are_listed_without_a_passphrase(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project.run("up")[0] == 0
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    state = project.directory / "state"

    def listed(*more: str) -> str:
        out = io.StringIO()
        assert main(["stack", "ls", "--state", str(state), *more], out) == 0
        return out.getvalue()

    (heading, row) = listed().splitlines()
    assert heading.split("  ")[0].strip() == "NAME" and row.split()[0] == "dev" and row.split()[-1] == "3"
    (found,) = json.loads(listed("--json"))
    assert found["name"] == "dev" and found["lastUpdate"].endswith("Z") and not found["updateInProgress"]
    with StackLock(state / "stacks" / "dev"):
        assert "in progress" in listed() and json.loads(listed("--json"))[0]["updateInProgress"]


@pytest.mark.parametrize("command", ["preview", "up", "refresh", "destroy"])
def test_help_has_groups_and_the_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    for part in ("stack:", "selection:", "execution:", "output:", "exit codes:"):
        assert part in shown

"""Killed runs: nothing is lost, nothing is made twice, the next run finishes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pulumi
import pytest
from pulumi import ResourceOptions

from local.engine.stack.lock import LockedError, StackLock
from local.plugins.provider import CreateRequest, CreateResult, PartialFailure, ReadResult
from local.plugins.values import PropertyMap
from tests.local.engine.killable_stack import Killed
from tests.local.engine.things import Memory, MemoryProvider
from tests.waiting import eventually

pytestmark = pytest.mark.engine


def program(kit: Any) -> Any:
    def run() -> None:
        a = kit.Thing("a", token=pulumi.Output.secret("hunter2"))
        kit.Thing("b", size=1, net=a.address)

    return run


def test_a_create_with_unknown_outcome_is_pending_and_the_next_up_finishes_it(stack: Any, kit: Any) -> None:
    stack.cloud.after["create b"] = Killed()
    with pytest.raises(Killed):
        stack.up(program(kit))
    pending = stack.open().store.snapshot.pending
    assert [(str(p.operation), p.resource.name) for p in pending.values()] == [("creating", "b")]
    assert stack.open().store.export()["deployment"]["pending_operations"][0]["type"] == "creating"

    outcome = stack.up(program(kit))

    assert outcome.ok and "interrupted" in outcome.warnings[0]
    assert sorted(stack.cloud.objects) == ["a-a", "b-a"]
    assert stack.cloud.asked("create") == ["create a", "create b", "create b"]
    assert not stack.open().store.snapshot.pending
    assert stack.up(program(kit)).counts == {"same": 3}


def test_a_create_killed_before_it_happened_is_made_by_the_next_run(stack: Any, kit: Any) -> None:
    stack.cloud.faults["create b"] = Killed()
    with pytest.raises(Killed):
        stack.up(program(kit))
    stack.cloud.faults.clear()

    assert stack.refresh().ok
    assert sorted(stack.cloud.objects) == ["a-a", "b-a"] and stack.resources()["b"].id == "b-a"


def test_destroy_after_a_kill_leaves_nothing_behind(stack: Any, kit: Any) -> None:
    stack.cloud.after["create b"] = Killed()
    with pytest.raises(Killed):
        stack.up(program(kit))

    assert stack.destroy().ok
    assert stack.cloud.objects == {}


def test_a_pending_create_that_the_program_no_longer_wants_is_deleted(stack: Any, kit: Any) -> None:
    stack.cloud.after["create b"] = Killed()
    with pytest.raises(Killed):
        stack.up(program(kit))

    assert stack.up(lambda: kit.Thing("a", token=pulumi.Output.secret("hunter2"))).ok
    assert list(stack.cloud.objects) == ["a-a"]


def test_a_resumed_create_may_wait_for_another_resource_of_the_program(stack: Any, kit: Any) -> None:
    def run() -> None:
        kit.Thing("service")
        kit.Thing("workload")

    stack.cloud.faults = {"create service": Killed()}
    with pytest.raises(Killed):
        stack.up(lambda: kit.Thing("service"))
    stack.cloud.faults.clear()
    stack.cloud.waits_for["service"] = "workload-a"

    assert stack.up(run).ok
    assert sorted(stack.cloud.objects) == ["service-a", "workload-a"]


def test_a_resumed_create_is_updated_with_the_programs_changes(stack: Any, kit: Any) -> None:
    stack.cloud.after["create a"] = Killed()
    with pytest.raises(Killed):
        stack.up(lambda: kit.Thing("a", size=1))

    assert stack.up(lambda: kit.Thing("a", size=2)).ok
    assert stack.cloud.asked("create", "update") == ["create a", "create a", "update a"]
    assert stack.cloud.objects == {"a-a": {"size": 2}} and stack.resources()["a"].outputs["size"] == 2


@pytest.mark.parametrize("moment", ["faults", "after"])
def test_an_interrupted_update_is_repeated_by_the_next_up(stack: Any, kit: Any, moment: str) -> None:
    stack.up(lambda: kit.Thing("a", size=1))
    getattr(stack.cloud, moment)["update a"] = Killed()
    with pytest.raises(Killed):
        stack.up(lambda: kit.Thing("a", size=2))
    stack.cloud.faults.clear()

    assert stack.up(lambda: kit.Thing("a", size=2)).counts == {"same": 1, "update": 1}
    assert stack.cloud.objects == {"a-a": {"size": 2}} and stack.resources()["a"].outputs["size"] == 2


def test_an_interrupted_update_is_undone_if_the_program_has_the_old_inputs(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("a", size=1))
    stack.cloud.after["update a"] = Killed()
    with pytest.raises(Killed):
        stack.up(lambda: kit.Thing("a", size=2))

    assert stack.preview(lambda: kit.Thing("a", size=1)).counts == {"same": 1, "update": 1}
    assert stack.up(lambda: kit.Thing("a", size=1)).counts == {"same": 1, "update": 1}
    assert stack.cloud.objects == {"a-a": {"size": 1}}
    assert stack.up(lambda: kit.Thing("a", size=1)).counts == {"same": 2}


@pytest.mark.parametrize("moment", ["faults", "after"])
def test_an_interrupted_delete_is_finished(stack: Any, kit: Any, moment: str) -> None:
    stack.up(lambda: kit.Thing("a"))
    getattr(stack.cloud, moment)["delete a"] = Killed()
    with pytest.raises(Killed):
        stack.up(lambda: None)
    stack.cloud.faults.clear()

    assert stack.up(lambda: None).ok
    assert stack.cloud.objects == {} and "a" not in stack.resources()


@pytest.mark.parametrize("verb", ["create", "delete"])
@pytest.mark.parametrize("moment", ["faults", "after"])
@pytest.mark.parametrize("delete_first", [True, False])
def test_an_interrupted_replacement_leaves_exactly_one(
    stack: Any, kit: Any, verb: str, moment: str, delete_first: bool
) -> None:
    opts = ResourceOptions(delete_before_replace=delete_first)
    stack.up(lambda: kit.Thing("a", opts, kind="x"))
    getattr(stack.cloud, moment)[f"{verb} a"] = Killed()
    with pytest.raises(Killed):
        stack.up(lambda: kit.Thing("a", opts, kind="y"))
    stack.cloud.faults.clear()

    assert stack.up(lambda: kit.Thing("a", opts, kind="y")).ok
    assert list(stack.cloud.objects) == ["a-y"]
    assert stack.up(lambda: kit.Thing("a", opts, kind="y")).counts == {"same": 2}


def test_an_interrupted_replacement_is_deleted_if_its_dependency_is_now_replaced_first(stack: Any, kit: Any) -> None:
    def program(kind: str, suffix: str) -> Any:
        def run() -> None:
            a = kit.Thing("a", ResourceOptions(delete_before_replace=True), kind=kind)
            kit.Thing("b", kind=a.address.apply(lambda address: address + suffix))

        return run

    stack.up(program("x", ""))
    stack.cloud.after["create b"] = Killed()
    with pytest.raises(Killed):
        stack.up(program("x", "!"))

    assert stack.up(program("y", "")).ok
    assert sorted(stack.cloud.objects) == ["a-y", "b-address of a-y"]
    assert stack.up(program("y", "")).counts == {"same": 3}


@pytest.mark.parametrize("moment", ["faults", "after"])
def test_what_an_interrupted_update_made_secret_stays_secret_in_a_refresh(stack: Any, kit: Any, moment: str) -> None:
    stack.up(lambda: kit.Thing("a"))
    getattr(stack.cloud, moment)["update a"] = Killed()
    with pytest.raises(Killed):
        stack.up(lambda: kit.Thing("a", token=pulumi.Output.secret("hunter2")))
    stack.cloud.faults.clear()

    assert stack.refresh().ok
    assert "hunter2" not in stack.files()


def test_a_refresh_does_not_settle_an_interrupted_update_if_the_provider_returns_no_inputs(
    stack: Any, kit: Any
) -> None:
    class WithoutInputs(MemoryProvider):
        def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
            return replace(super().read(urn, id, inputs, outputs), inputs=None)

    stack.factories["memory"] = lambda r: WithoutInputs(stack.cloud, r.inputs)
    stack.up(lambda: kit.Thing("a", size=1))
    stack.cloud.after["update a"] = Killed()
    with pytest.raises(Killed):
        stack.up(lambda: kit.Thing("a", size=2))

    assert stack.refresh().ok
    assert stack.up(lambda: kit.Thing("a", size=1)).counts == {"same": 1, "update": 1}
    assert stack.cloud.objects == {"a-a": {"size": 1}}


def test_a_preview_after_a_kill_only_reports_pending_operations(stack: Any, kit: Any) -> None:
    stack.cloud.after["create b"] = Killed()
    with pytest.raises(Killed):
        stack.up(program(kit))
    before = stack.files()

    outcome = stack.preview(program(kit))

    assert outcome.ok and "creating" in outcome.warnings[0]
    assert stack.files() == before


@pytest.mark.parametrize("moment", ["faults", "after"])
def test_a_preview_treats_an_interrupted_deletion_as_done_like_up(stack: Any, kit: Any, moment: str) -> None:
    stack.up(program(kit))
    getattr(stack.cloud, moment)["delete b"] = Killed()
    with pytest.raises(Killed):
        stack.destroy()
    stack.cloud.faults.clear()
    before = stack.files()

    outcome = stack.preview(program(kit))

    assert outcome.ok and outcome.done[-1] == "create b"
    assert len(outcome.warnings) == 1 and "deleting" in outcome.warnings[0]
    assert stack.files() == before
    assert stack.up(program(kit)).counts["create"] == 1


def test_a_pending_create_that_cannot_be_finished_fails_the_refresh_and_stays(stack: Any, kit: Any) -> None:
    stack.cloud.faults["create b"] = Killed()
    with pytest.raises(Killed):
        stack.up(program(kit))
    stack.cloud.faults["create b"] = kit.ProviderError("the cloud is down")

    outcome = stack.refresh()

    assert not outcome.ok and "creating" in outcome.errors[-1]
    assert stack.open().store.snapshot.pending


@pytest.mark.parametrize("partial", [False, True])
def test_a_create_that_fails_when_repeated_does_not_show_its_secrets(stack: Any, kit: Any, partial: bool) -> None:
    stack.cloud.faults["create a"] = Killed()
    with pytest.raises(Killed):
        stack.up(program(kit))
    said = "token hunter2 is not valid"
    stack.cloud.faults["create a"] = PartialFailure(said, "a-a", {}) if partial else kit.ProviderError(said)

    outcome = stack.refresh()

    assert outcome.warnings[-1].endswith(": token [secret] is not valid") and "hunter2" not in stack.files()


def test_a_pending_create_is_forgotten_on_request(stack: Any, kit: Any) -> None:
    stack.cloud.faults["create b"] = Killed()
    with pytest.raises(Killed):
        stack.up(program(kit))
    stack.cloud.faults["create b"] = kit.ProviderError("the cloud is gone for good")
    refused = stack.refresh()

    outcome = stack.refresh(clear_pending_creates=True)

    assert not refused.ok and "--clear-pending-creates" in refused.errors[-1]
    assert outcome.ok and "forgotten" in outcome.warnings[0]
    assert not stack.open().store.snapshot.pending
    assert stack.destroy().ok


def test_an_incomplete_journal_line_is_ignored(stack: Any, kit: Any) -> None:
    stack.cloud.after["create b"] = Killed()
    with pytest.raises(Killed):
        stack.up(program(kit))
    with (stack.stack_dir / "journal.jsonl").open("a") as journal:
        journal.write('{"op":"put","resource":{"urn":"urn:pul')

    assert stack.up(program(kit)).ok


def test_a_full_disk_leaves_no_half_line_in_the_journal(stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stack.up(lambda: kit.Thing("a"))
    write = os.write
    with monkeypatch.context() as full:
        full.setattr("local.engine.stack.state.os.write", lambda file, data: write(file, data[: len(data) // 2]))
        with pytest.raises(OSError, match="No space left"):
            stack.up(lambda: kit.Thing("a", size=2))

    assert stack.up(lambda: kit.Thing("a", size=2)).ok
    assert stack.resources()["a"].outputs["size"] == 2


def test_the_lock_of_a_dead_run_is_taken_over_and_that_of_a_live_one_is_not(stack: Any, kit: Any) -> None:
    lock = stack.stack_dir / "lock.json"
    with StackLock(stack.stack_dir), pytest.raises(LockedError, match=str(os.getpid())):
        stack.up(program(kit))

    # A process with that id may well live: it is not the one that left the file.
    lock.write_text(json.dumps({"pid": os.getpid()}))
    outcome = stack.up(program(kit))
    assert outcome.ok and "removed the lock of a killed run" in outcome.warnings[0] and not lock.exists()


def test_a_preview_needs_no_lock(stack: Any, kit: Any) -> None:
    with StackLock(stack.stack_dir):
        assert stack.preview(program(kit)).ok


PROVIDER = """
import pathlib, time
import pulumi
from pulumi.dynamic import CreateResult, Resource, ResourceProvider

HERE = pathlib.Path(__file__).parent


class FileProvider(ResourceProvider):
    def create(self, props):
        with (HERE / "created").open("a") as log:
            log.write(props["name"] + "\\n")
        (HERE / "objects" / props["name"]).touch()
        while props["name"] == "slow" and not (HERE / "go").exists():
            time.sleep(0.02)
        return CreateResult(props["name"], dict(props))

    def delete(self, id, props):
        (HERE / "objects" / id).unlink(missing_ok=True)


class File(Resource):
    def __init__(self, name, opts=None):
        super().__init__(FileProvider(), name, {"name": name}, opts)
"""


@dataclass
class Files:
    """A program of two dynamic resources in a folder; `slow` waits in its create until the file `go` exists."""

    directory: Path

    def __post_init__(self) -> None:
        (self.directory / "Pulumi.yaml").write_text("name: test\nruntime: python\n")
        (self.directory / "Pulumi.dev.yaml").write_text("config: {}\n")
        (self.directory / "files.py").write_text(PROVIDER)
        (self.directory / "__main__.py").write_text("from files import File\nFile('quick')\nFile('slow')\n")
        (self.directory / "objects").mkdir()

    @property
    def command(self) -> list[str]:
        where = ["-s", "dev", "-C", str(self.directory), "--state", str(self.directory / "state")]
        return [sys.executable, "-m", "local.engine", "up", *where]

    @property
    def journal(self) -> Path:
        return self.directory / "state" / "stacks" / "dev" / "journal.jsonl"

    def deployment(self) -> dict[str, Any]:
        document = json.loads((self.journal.parent / "state.json").read_text())
        return dict(document["deployment"])

    @property
    def events(self) -> Path:
        """The events so far of the started `up`."""
        return self.directory / "events"

    def start(self) -> subprocess.Popen[bytes]:
        """Start an `up`; it is in the middle of `slow` when this returns, and done with `quick`."""
        with self.events.open("wb") as events:
            process = subprocess.Popen([*self.command, "--json"], stdout=events, start_new_session=True)
        objects = self.directory / "objects"
        eventually(lambda: {p.name for p in objects.glob("*")} == {"quick", "slow"}, "both are being made")
        eventually(lambda: self.journal.exists() and '"id":"quick"' in self.journal.read_text(), "one is written down")
        return process


def test_ctrl_c_lets_running_steps_finish_and_starts_no_new_ones(tmp_path: Path) -> None:
    files = Files(tmp_path)
    (tmp_path / "__main__.py").write_text(
        "import pulumi\nfrom files import File\nFile('quick')\n"
        "File('next', pulumi.ResourceOptions(depends_on=[File('slow')]))\n"
    )
    process = files.start()
    process.send_signal(signal.SIGINT)
    eventually(lambda: "interrupted" in files.events.read_text(), "it says that it was interrupted")
    (tmp_path / "go").touch()

    assert process.wait(60) == 1
    deployment = files.deployment()
    assert {r["id"] for r in deployment["resources"] if "dynamic" in r["type"]} == {"quick", "slow"}
    assert "pending_operations" not in deployment


class Waiting(MemoryProvider):
    """Makes a thing that is never ready, and during whose wait Ctrl-C is pressed."""

    def __init__(self, cloud: Memory, config: PropertyMap) -> None:
        super().__init__(cloud, config)
        self._stop = threading.Event()

    def create(self, request: CreateRequest) -> CreateResult:
        made = super().create(request)
        signal.raise_signal(signal.SIGINT)
        assert self._stop.wait(60), "nobody told it to stop"
        raise PartialFailure("interrupted while waiting", made.id, made.outputs)

    def interrupt(self) -> None:
        self._stop.set()


def test_ctrl_c_ends_the_wait_for_readiness(stack: Any, kit: Any) -> None:
    stack.factories["memory"] = lambda resource: Waiting(stack.cloud, resource.inputs)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a parallel run of the tests may ignore it
    try:
        outcome = stack.up(lambda: kit.Thing("a"))
    finally:
        signal.signal(signal.SIGINT, before)

    assert "it exists, but did not become ready: interrupted while waiting" in outcome.errors
    assert stack.resources()["a"].id == "a-a"
    assert not stack.open().store.snapshot.pending


def has_ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_the_next_up_recovers_from_a_kill_9(tmp_path: Path) -> None:
    files = Files(tmp_path)
    first = files.start()
    servers = psutil.Process(first.pid).children(recursive=True)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    eventually(lambda: all(map(has_ended, servers)), "its servers end with it")

    (tmp_path / "go").touch()
    second = subprocess.run(files.command, capture_output=True, text=True, check=False)

    assert second.returncode == 0, second.stdout + second.stderr
    assert "interrupted while creating" in second.stdout
    assert (tmp_path / "created").read_text().split().count("quick") == 1
    deployment = files.deployment()
    assert {r["id"] for r in deployment["resources"] if "dynamic" in r["type"]} == {"quick", "slow"}
    assert "pending_operations" not in deployment and not files.journal.exists()


def test_resolved_operations_stay_resolved_after_another_kill(stack: Any, kit: Any) -> None:
    def made(size: int) -> Any:
        return lambda: [kit.Thing("b", size=size), kit.Thing("a", pulumi.ResourceOptions(delete_before_replace=True))]

    stack.up(lambda: [kit.Thing("b", size=1), kit.Thing("a", kind="old")])
    # The pending operation has another number in the next run's journal than in the state that it is folded into.
    stack.cloud.after["delete a"] = Killed()
    with pytest.raises(Killed):
        stack.up(made(2))
    stack.cloud.after["update b"] = Killed()
    with suppress(Killed):
        stack.up(made(3))
    stack.cloud.calls.clear()

    assert stack.up(made(4)).ok
    assert stack.cloud.asked("delete") == []
    assert stack.up(made(4)).counts == {"same": 3}

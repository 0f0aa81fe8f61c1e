"""Starting processes: mounts, failures, signals, and that nothing survives its machine."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from local.machine import processes
from local.machine.config import ConfigError, Isolation, load_config
from local.machine.sandbox import SandboxMount, mount_tree
from local.machine.unsupported import not_honoured, refusals
from local.machine.volumes import Mount
from local.machine.wildcard import parse_sockets
from tests.local.scenarios import run
from tests.waiting import eventually


def shell(tmp_path: Path, script: str, **more: object) -> processes.Command:
    fields: dict[str, object] = {"env": {"PATH": os.defpath}, "cwd": None, "log": tmp_path / "log"}
    return processes.Command(argv=["sh", "-c", script], **{**fields, **more})  # type: ignore[arg-type]


def bind(target: str, source: str = "/v") -> SandboxMount:
    return {"source": source, "target": target, "read_only": False}


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory for a container's root; skips where this user may make no mounts."""
    directory = tmp_path / "root"
    directory.mkdir()
    if not run(lambda: processes.can_mount(directory)):
        pytest.skip("this user may not make mounts")
    return directory


@pytest.mark.integration
def test_a_process_sees_its_volumes_where_the_container_wants_them(tmp_path: Path, root: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "token").write_text("t0p")
    target = "/var/run/secrets/kubernetes.io/serviceaccount"
    script = (
        f"cat {target}/token /new/place/token; touch {target}/x 2>/dev/null || echo ' read-only'; touch /new/place/y"
    )
    mounts = [Mount(volume, target, read_only=True), Mount(volume, "/new/place", read_only=False)]

    async def scenario() -> processes.Exit:
        return await (await processes.start(shell(tmp_path, script, mounts=mounts, root=root), tmp_path)).wait()

    assert run(scenario) == processes.Exit(0, None)
    assert (tmp_path / "log").read_text() == "t0pt0p read-only\n"
    assert (volume / "y").exists()
    assert not (volume / "x").exists()
    assert not Path("/new").exists()
    assert list(root.iterdir()) == []


@pytest.mark.integration
def test_this_python_and_its_packages_stay_visible_inside(tmp_path: Path, root: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    mounts = [Mount(volume, str(Path(sys.prefix) / "added" / "here"), read_only=False)]
    command = processes.Command(
        [sys.executable, "-c", "import local.addresses; print('ok')"], {}, "/", tmp_path / "log", mounts, root
    )

    async def scenario() -> processes.Exit:
        return await (await processes.start(command, tmp_path)).wait()

    assert run(scenario).code == 0, (tmp_path / "log").read_text()
    assert (tmp_path / "log").read_text() == "ok\n"


def test_mount_points_form_a_tree_and_nested_ones_are_separate() -> None:
    tree, nested = mount_tree([bind("/nowhere/a/b"), bind("/nowhere/c"), bind("/nowhere/c/d")])
    assert tree == {"nowhere": {"a": {"b": bind("/nowhere/a/b")}, "c": bind("/nowhere/c")}}
    assert nested == [bind("/nowhere/c/d")]


@pytest.mark.parametrize("mounts", [[bind("/")], [bind("/nowhere/a"), bind("/nowhere/a")]])
def test_an_impossible_mount_is_refused(mounts: list[SandboxMount]) -> None:
    with pytest.raises(OSError, match="mounted"):
        mount_tree(mounts)


@pytest.mark.integration
def test_starting_a_missing_command_is_an_error(tmp_path: Path) -> None:
    command = processes.Command(["no-such-command"], {"PATH": os.defpath}, None, tmp_path / "log")
    with pytest.raises(processes.LaunchError, match="No such file"):
        run(lambda: processes.start(command, tmp_path))


@pytest.mark.integration
def test_a_process_that_ignores_sigterm_is_killed_with_its_children_after_its_grace(tmp_path: Path) -> None:
    script = "trap '' TERM; sleep 300 & echo $! > child; while :; do sleep 300; done"

    async def scenario() -> processes.Exit:
        process = await processes.start(shell(tmp_path, script, cwd=str(tmp_path)), tmp_path)
        child = tmp_path / "child"
        while not (child.exists() and child.read_text().strip()):  # it shows that the trap is set
            await asyncio.sleep(0.02)
        return await process.stop(0.2)

    assert run(scenario) == processes.Exit(137, signal.SIGKILL)
    child = int((tmp_path / "child").read_text())
    eventually(lambda: not is_running(child), "the child ends")


@pytest.mark.integration
def test_exit_codes_and_signals_are_reported(tmp_path: Path) -> None:
    async def outcome(script: str) -> processes.Exit:
        return await (await processes.start(shell(tmp_path, script), tmp_path)).wait()

    assert run(lambda: outcome("exit 3")) == processes.Exit(3, None)
    assert run(lambda: outcome("kill -TERM $$")) == processes.Exit(143, signal.SIGTERM)


_STARTER = """
import asyncio, sys
from pathlib import Path
from local.machine import processes

async def main():
    directory = Path(sys.argv[1])
    script = "setsid sh -c 'echo $$ > grandchild; exec sleep 300' & echo $$ > child; exec sleep 300"
    await processes.start(processes.Command(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, str(directory),
                                            directory / "log"), directory)
    await asyncio.sleep(300)

asyncio.run(main())
"""


@pytest.mark.integration
def test_processes_of_a_killed_machine_die_or_are_found_at_the_next_boot(tmp_path: Path) -> None:
    machine = subprocess.Popen([sys.executable, "-c", _STARTER, str(tmp_path)])
    files = [tmp_path / "child", tmp_path / "grandchild"]
    eventually(lambda: all(file.exists() and file.read_text().strip() for file in files), "both have started")
    child, grandchild = (int(file.read_text()) for file in files)

    machine.kill()
    machine.wait()

    eventually(lambda: not is_running(child), "the child ends")
    # Its child, in a session of its own, was not the machine's: the next boot ends it.
    assert is_running(grandchild)
    assert processes.kill_leftovers(tmp_path) == 1
    eventually(lambda: not is_running(grandchild), "the grandchild ends")


@pytest.mark.integration
def test_a_process_is_found_from_its_first_instant(tmp_path: Path) -> None:
    """Linux shows no environment of a process in the middle of exec: about one in eighty when looked at here."""
    for _ in range(300):
        with subprocess.Popen(["sleep", "600"], env={processes.MARK: str(tmp_path)}) as started:
            found = processes.kill_leftovers(tmp_path)
            started.kill()

        assert found == 1


@pytest.mark.integration
def test_processes_of_another_machine_are_left_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        process = await processes.start(shell(tmp_path, "exec sleep 300"), tmp_path / "mine")
        assert processes.kill_leftovers(tmp_path / "other") == 0
        assert is_running(process.pid)
        assert processes.kill_leftovers(tmp_path / "mine") == 1
        assert (await process.wait()).signal == signal.SIGKILL

    run(scenario)


def test_sockets_on_every_address_are_recognised_in_the_kernels_table() -> None:
    table = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 111 1 0
   1: 0200347F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 222 1 0
   2: 00000000:1F92 0100007F:0016 01 00000000:00000000 00:00000000 00000000  0 0 333 1 0
"""
    assert parse_sockets(table, "0A") == [(8080, "111")]


def test_unsupported_pod_fields_are_named() -> None:
    pod = {
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "securityContext": {"runAsUser": os.getuid() + 1},
                    "resources": {"limits": {"cpu": "1"}},
                    "lifecycle": {"preStop": {}},
                    "ports": [{"containerPort": 80, "hostPort": 80}],
                }
            ]
        }
    }
    assert not_honoured(pod) == [
        "container c: securityContext.runAsUser",
        "container c: resources.limits",
        "container c: lifecycle.preStop",
        "container c: hostPort 80",
    ]
    assert refusals(pod) == []
    pod["spec"]["initContainers"] = [{"name": "i"}]
    assert refusals(pod) == ["initContainers are not supported"]


def test_a_machine_is_read_from_its_directory(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text(
        '{"id": "i-1", "node_name": "a", "address": "10.17.0.5", "provider_id": null, "role": "worker",'
        ' "node_labels": {"x": "y"}, "type": "m1.small"}'
    )
    config = load_config(tmp_path)
    assert (config.node_name, config.isolation, config.machine_type.cpus) == ("a", Isolation.AUTO, 2)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", "machine.json"), ('{"color": 1}', "unknown field color"), ('{"id": "i"}', "missing")],
)
def test_an_invalid_machine_directory_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "machine.json").write_text(text)
    with pytest.raises(ConfigError, match=problem):
        load_config(tmp_path)

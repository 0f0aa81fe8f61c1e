"""Plug-in processes: how they start, fail and end."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from local.plugins.plugin_process import PluginError, PluginProcess

pytestmark = pytest.mark.integration

SERVE = "import sys, time; print(4711, flush=True); print('after', flush=True); time.sleep(600)"


def start(code: str, folder: Path, lines: queue.Queue[str] | None = None, **env: str) -> PluginProcess:
    taken: queue.Queue[str] = queue.Queue() if lines is None else lines
    return PluginProcess([sys.executable, "-c", code], cwd=folder, env=os.environ | env, on_line=taken.put)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def test_the_first_line_is_the_port_and_later_ones_are_passed_on(tmp_path: Path) -> None:
    lines: queue.Queue[str] = queue.Queue()

    process = start(SERVE, tmp_path, lines)

    assert process.port == 4711
    assert lines.get(timeout=30) == "after"
    process.stop()


def test_a_plugin_runs_in_its_folder_with_its_environment(tmp_path: Path) -> None:
    code = "import os, time; print(1, flush=True); print(os.getcwd(), os.environ['WORD'], flush=True); time.sleep(600)"
    lines: queue.Queue[str] = queue.Queue()

    process = start(code, tmp_path, lines, WORD="word")

    assert lines.get(timeout=30) == f"{tmp_path} word"
    process.stop()


def test_a_plugin_that_ends_before_it_listens_leaves_its_last_output(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="printed no port") as caught:
        start("raise SystemExit('no luck')", tmp_path)

    assert caught.value.output == "no luck"


def test_a_first_line_that_is_not_a_port_ends_the_plugin(tmp_path: Path) -> None:
    before = children()

    with pytest.raises(PluginError, match='"hello", not a port'):
        start("import time; print('hello', flush=True); time.sleep(600)", tmp_path)

    assert not children() - before


def test_a_missing_plugin_program_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="No such file"):
        PluginProcess(["/no/such/program"], cwd=tmp_path, env=os.environ, on_line=lambda _line: None)


def test_a_missing_plugin_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="could not be started"):
        start(SERVE, tmp_path / "none")


def test_a_plugin_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.plugins.plugin_process.STOP_SECONDS", 0.2)
    before = children()
    process = start(f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SERVE}", tmp_path)

    process.stop()
    process.stop()

    assert not children() - before


def test_a_plugin_ends_with_the_engine_even_when_that_is_killed(tmp_path: Path) -> None:
    engine = f"""
import os, sys, time
from pathlib import Path
from local.plugins.plugin_process import PluginProcess
PluginProcess([sys.executable, "-c", {SERVE!r}], cwd=Path({str(tmp_path)!r}), env=os.environ, on_line=lambda _: None)
print("ready", flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", engine], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline().strip() == "ready"
        plugins = psutil.Process(running.pid).children()

        running.kill()

    gone, alive = psutil.wait_procs(plugins, timeout=30)
    assert (len(gone), alive) == (1, [])

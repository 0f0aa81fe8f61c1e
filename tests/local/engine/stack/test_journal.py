"""The journal: whole lines in order, and nothing of a line that could not be written."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from local.engine.stack.journal import Journal, entries

pytestmark = pytest.mark.engine


def test_appended_entries_are_read_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")

    journal.append({"number": 1})
    journal.append({"number": 2})

    # Still open: a killed run closes nothing.
    assert list(entries(tmp_path / "journal")) == [{"number": 1}, {"number": 2}]


def test_an_incomplete_last_line_of_a_killed_run_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text('{"number":1}\n{"numb')

    assert list(entries(path)) == [{"number": 1}]


def test_a_missing_journal_has_no_entries(tmp_path: Path) -> None:
    assert list(entries(tmp_path / "journal")) == []


def test_only_its_owner_can_read_the_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")

    journal.append({})

    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def test_a_removed_journal_starts_empty(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append({"number": 1})

    journal.remove()
    journal.append({"number": 2})

    assert list(entries(tmp_path / "journal")) == [{"number": 2}]


def test_a_line_that_exceeds_the_disk_space_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    # A limit on the size of files simulates a full disk; it is the process's own.
    program = f"""
import resource, signal
from pathlib import Path
from local.engine.stack.journal import Journal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (60, {resource.RLIM_INFINITY}))
journal = Journal(Path({str(path)!r}))
journal.append({{"number": 1}})
try:
    journal.append({{"text": "x" * 100}})
except OSError as error:
    print(type(error).__name__)
journal.append({{"number": 2}})
"""

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=os.environ)

    assert (ran.stdout, ran.stderr) == ("OSError\n", "")
    assert list(entries(path)) == [{"number": 1}, {"number": 2}]

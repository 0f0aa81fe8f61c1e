"""The state on disk: journal and state together, whenever a run was killed, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from local.engine.stack.journal import Journal
from local.engine.stack.resource import ResourceState
from local.engine.stack.snapshot import Operation
from local.engine.stack.state import BACKUP_FILE, JOURNAL_FILE, STATE_FILE, StateError, Store

pytestmark = pytest.mark.engine


class NoSecrets:
    def encrypt(self, plaintext: str) -> str:
        raise AssertionError(f"{len(plaintext)} characters are no secret")

    def decrypt(self, ciphertext: str) -> str:
        raise AssertionError(f"{len(ciphertext)} characters are no secret")


def opened(directory: Path, *, writable: bool = True) -> Store:
    return Store(directory, NoSecrets(), salt="salt", writable=writable)


def thing(name: str, **more: Any) -> ResourceState:
    return ResourceState(f"urn:pulumi:dev::test::test:index:Thing::{name}", "test:index:Thing", custom=True, **more)


def pending(store: Store) -> list[str]:
    return [each.resource.name for each in store.snapshot.pending.values()]


def killed_before_the_journal_is_removed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as killed, pytest.raises(SystemExit):
        killed.setattr(Journal, "remove", lambda _: sys.exit("killed"))
        store.compact()


def test_a_journal_already_folded_into_the_state_is_not_applied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(tmp_path)
    first.begin(Operation.CREATING, thing("a"))
    first.begin(Operation.CREATING, thing("b"))
    first.compact()
    second = opened(tmp_path)
    second.end(1)
    killed_before_the_journal_is_removed(second, monkeypatch)

    # Applied again, the end of the first would end the second: that is the first of the new state.
    assert (tmp_path / JOURNAL_FILE).exists()
    assert pending(opened(tmp_path, writable=False)) == ["b"]
    assert pending(opened(tmp_path)) == ["b"]
    assert not (tmp_path / JOURNAL_FILE).exists()


def test_the_next_run_may_be_killed_too_before_the_journal_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(tmp_path)
    first.compact()
    first.put(thing("a", id="1"))
    killed_before_the_journal_is_removed(first, monkeypatch)
    backup = (tmp_path / BACKUP_FILE).read_text()

    with monkeypatch.context() as killed, pytest.raises(SystemExit):
        killed.setattr(Journal, "remove", lambda _: sys.exit("killed"))
        opened(tmp_path)

    assert [r.name for r in opened(tmp_path).snapshot.all()] == ["a"]
    assert (tmp_path / BACKUP_FILE).read_text() == backup


def test_entries_after_a_folded_journal_are_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened(tmp_path)
    first.compact()
    first.put(thing("a", id="1"))
    killed_before_the_journal_is_removed(first, monkeypatch)
    first.close()

    opened(tmp_path).put(thing("b", id="2"))

    assert [r.name for r in opened(tmp_path, writable=False).snapshot.all()] == ["a", "b"]


def test_a_step_that_ends_after_its_run_writes_nothing(tmp_path: Path) -> None:
    cut_short = opened(tmp_path)
    cut_short.compact()
    number = cut_short.begin(Operation.CREATING, thing("a"))
    cut_short.close()
    opened(tmp_path).put(thing("b", id="2"))

    with pytest.raises(StateError, match="the run is over"):
        cut_short.put(thing("a", id="1"), ends=number)

    found = opened(tmp_path, writable=False)
    assert ([r.name for r in found.snapshot.all()], pending(found)) == (["b"], ["a"])


@pytest.mark.parametrize("runs", [1, 3])
def test_a_reader_sees_whole_states_while_runs_fold_their_journals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int
) -> None:
    writer = opened(tmp_path)
    writer.compact()
    writer.put(thing("a", id="0"))
    read, paths = Path.read_bytes, []

    def reading(path: Path) -> bytes:
        data = read(path)
        paths.append(path.name)
        if len(paths) == 1:
            for run in range(runs):
                writer.put(thing("a", id=str(run)))
                writer.compact()
        return data

    monkeypatch.setattr(Path, "read_bytes", reading)
    assert [r.id for r in opened(tmp_path, writable=False).snapshot.all()] == [str(runs - 1)]
    assert len(paths) > 1


def test_a_journal_of_another_state_is_refused(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.compact()
    store.put(thing("a", id="1"))
    state = tmp_path / STATE_FILE
    state.write_text(state.read_text().replace("salt", "other"))

    with pytest.raises(StateError, match=r"journal\.jsonl .* continues a state other than"):
        opened(tmp_path, writable=False)


@pytest.mark.parametrize("text", ["[]", '{"op":"begin","number":1}', '{"op":"continues"}\n{"op":"end"}', "\x00\n"])
def test_a_malformed_journal_is_refused(tmp_path: Path, text: str) -> None:
    opened(tmp_path).compact()
    (tmp_path / JOURNAL_FILE).write_text(text + "\n")

    with pytest.raises(StateError, match=JOURNAL_FILE):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "`deployment` is missing"),
        ({"version": 99, "deployment": {}}, "version 99 is not one of"),
        ({"version": 3, "deployment": {"resources": [{"urn": 1}]}}, "`urn` cannot be a number"),
        ({"version": 3, "deployment": {"resources": [{"type": "t:m:T"}]}}, "'urn'"),
    ],
)
def test_a_malformed_state_is_refused_and_left_as_it_is(tmp_path: Path, document: Any, said: str) -> None:
    (tmp_path / STATE_FILE).write_text(json.dumps(document))

    with pytest.raises(StateError, match=said):
        opened(tmp_path)

    assert json.loads((tmp_path / STATE_FILE).read_text()) == document


def test_the_previous_state_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.compact()
    before = (tmp_path / STATE_FILE).read_bytes()
    store.put(thing("a", id="1"))
    store.compact()

    assert (tmp_path / BACKUP_FILE).read_bytes() == before
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_resources_are_ordered_after_their_dependencies_however_long_the_chain(tmp_path: Path) -> None:
    store = opened(tmp_path)
    names = [f"{n:04}" for n in range(3000)]
    for name, needed in zip(names, [*names[1:], ""], strict=True):
        store.put(thing(name, dependencies=(thing(needed).urn,) if needed else ()))
    store.compact()

    assert [r.name for r in opened(tmp_path, writable=False).snapshot.all()] == names[::-1]

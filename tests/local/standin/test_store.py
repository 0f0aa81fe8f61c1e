"""A transaction is written whole or not at all; a restart finds what was committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.standin.store import Store


def test_what_was_committed_is_there_after_a_restart_in_its_order(tmp_path: Path) -> None:
    first = Store(tmp_path / "a.db")
    with first.transaction():
        for name in ("b", "a", "c"):
            first.put("thing", name, {"id": name})
    with first.transaction():
        first.put("thing", "b", {"id": "b", "changed": True})
        first.remove("thing", "c")
        number = first.next_number()
    snapshot = first.snapshot()
    first.close()

    again = Store(tmp_path / "a.db")

    assert again.snapshot() == snapshot
    assert again.all("thing") == [{"id": "b", "changed": True}, {"id": "a"}]
    with again.transaction():
        assert again.next_number() == number + 1


def test_a_transaction_that_fails_changes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    with store.transaction():
        store.put("thing", "a", {"n": 1})

    with pytest.raises(ZeroDivisionError), store.transaction():
        store.put("thing", "a", {"n": 2})
        store.put("thing", "b", {"n": 3})
        store.remove("thing", "a")
        raise ZeroDivisionError

    assert store.all("thing") == [{"n": 1}]
    store.close()
    assert Store(tmp_path / "a.db").all("thing") == [{"n": 1}]


def test_an_object_that_is_no_json_fails_the_transaction_and_leaves_memory_as_the_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")

    with pytest.raises(TypeError), store.transaction():
        store.put("thing", "a", {"n": {1, 2}})

    assert store.all("thing") == []


def test_a_change_outside_a_transaction_is_a_mistake() -> None:
    with pytest.raises(RuntimeError, match="thing a is changed outside a transaction"):
        Store().put("thing", "a", {})

"""A stand-in's objects: JSON by kind and id, in memory, and on disk before a call is answered.

DANGER: what `get` and `all` return is the stored object itself. Change it only by `put` of a new one: a change in
place would be lost at a restart and kept after a refusal.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Object = dict[str, Any]

_COUNTER = "counter"
_SCHEMA = "CREATE TABLE IF NOT EXISTS objects (kind TEXT, id TEXT, body TEXT, PRIMARY KEY (kind, id))"
_WRITE = "INSERT INTO objects VALUES (?, ?, ?) ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body"
_REMOVE = "DELETE FROM objects WHERE kind = ? AND id = ?"


class Store:
    """Objects in the order of their creation. Not safe to use from several threads at once: its stand-in has a lock."""

    def __init__(self, path: Path | None = None) -> None:
        self._objects: dict[str, dict[str, Object]] = {}
        self._before: dict[tuple[str, str], Object | None] | None = None
        """In a transaction: what has changed, as it was."""
        self._db = None if path is None else sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        if self._db is not None:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(_SCHEMA)
            for kind, key, body in self._db.execute("SELECT kind, id, body FROM objects ORDER BY rowid"):
                self._objects.setdefault(kind, {})[key] = json.loads(body)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All changes of the block are written when it ends, or none if it raises."""
        self._before = {}
        try:
            yield
            self._commit(self._before)
        except BaseException:
            self._undo(self._before)
            raise
        finally:
            self._before = None

    def get(self, kind: str, id: str) -> Object | None:
        """The object, or None."""
        return self._objects.get(kind, {}).get(id)

    def all(self, kind: str) -> list[Object]:
        """All of a kind, oldest first."""
        return list(self._objects.get(kind, {}).values())

    def put(self, kind: str, id: str, body: Object) -> None:
        """Add or replace an object."""
        self._note(kind, id)
        self._objects.setdefault(kind, {})[id] = body

    def remove(self, kind: str, id: str) -> None:
        """Delete an object, if it exists."""
        self._note(kind, id)
        self._objects.get(kind, {}).pop(id, None)

    def next_number(self, name: str = "") -> int:
        """1, 2, 3 … by name; a number is never given twice."""
        number = int((self.get(_COUNTER, name) or {"last": 0})["last"]) + 1
        self.put(_COUNTER, name, {"last": number})
        return number

    def snapshot(self) -> dict[str, dict[str, Object]]:
        """A copy of everything."""
        copied: dict[str, dict[str, Object]] = json.loads(json.dumps(self._objects))
        return {kind: objects for kind, objects in copied.items() if objects}

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()

    def _note(self, kind: str, id: str) -> None:
        if self._before is None:
            raise RuntimeError(f"{kind} {id} is changed outside a transaction")
        self._before.setdefault((kind, id), self.get(kind, id))

    def _commit(self, before: dict[tuple[str, str], Object | None]) -> None:
        if self._db is None or not before:
            return
        changed = {key: self.get(*key) for key in before}
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(_REMOVE, [key for key, body in changed.items() if body is None])
            written = [(*key, json.dumps(body)) for key, body in changed.items() if body is not None]
            self._db.executemany(_WRITE, written)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _undo(self, before: dict[tuple[str, str], Object | None]) -> None:
        for (kind, key), body in before.items():
            if body is None:
                self._objects.get(kind, {}).pop(key, None)
            else:
                self._objects.setdefault(kind, {})[key] = body

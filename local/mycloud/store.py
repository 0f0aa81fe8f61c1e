"""mycloud's objects in one SQLite database with one writer; a write is committed before it is answered.

Objects are pydantic records stored as JSON; the fields that lists filter by are also indexed columns. Every write
stamps the object with the next number of one sequence, so a follower can query "what changed since". The database runs
in WAL mode: a killed process loses nothing committed (the kernel holds the pages), and a reader never blocks the
writer.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local.mycloud.errors import Conflict, IdempotencyConflict, InvalidParameter, NotFound
from local.mycloud.filters import Filter, where
from local.mycloud.models.balancing import LoadBalancerRecord
from local.mycloud.models.common import MAX_PAGE, Create, State, Update
from local.mycloud.models.networking import Route
from local.mycloud.schema import COLUMNS, SCHEMA, R, Record, kind_of


class Session:
    """Reads and writes inside one transaction; made only by `Store.read` and `Store.write`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    # -- objects

    def find(self, type_: type[R], id: str) -> R | None:
        """The object, or None."""
        row = self._db.execute("SELECT body FROM objects WHERE id = ? AND kind = ?", (id, kind_of(type_))).fetchone()
        return None if row is None else type_.model_validate_json(row[0])

    def get(self, type_: type[R], id: str) -> R:
        """The object; raises `NotFound`."""
        found = self.find(type_, id)
        if found is None:
            raise NotFound(f"{kind_of(type_)} {id} does not exist")
        return found

    def referenced(self, type_: type[R], id: str, field: str) -> R:
        """The object that parameter `field` names; raises `InvalidParameter`, or `Conflict` if it is being deleted."""
        found = self.find(type_, id)
        if found is None:
            raise InvalidParameter(f"{kind_of(type_)} {id!r} does not exist", field=field)
        if found.state == State.DELETING:
            raise Conflict(f"{kind_of(type_)} {id} is being deleted", field=field)
        return found

    def query(self, type_: type[R], wanted: Filter | None = None) -> list[R]:
        """All matching objects, oldest first."""
        clause, values = where(type_, wanted or Filter())
        # The plus keeps SQLite from scanning all objects in order where an index finds the few that match.
        rows = self._db.execute(f"SELECT body FROM objects WHERE {clause} ORDER BY +seq", values)
        return [type_.model_validate_json(row[0]) for row in rows]

    def exists(self, type_: type[R], wanted: Filter) -> bool:
        """Whether any object matches."""
        clause, values = where(type_, wanted)
        return self._db.execute(f"SELECT 1 FROM objects WHERE {clause} LIMIT 1", values).fetchone() is not None

    def count(self, type_: type[R]) -> int:
        """The number of objects of the type."""
        return int(self._db.execute("SELECT count(*) FROM objects WHERE kind = ?", (kind_of(type_),)).fetchone()[0])

    def is_in_use(self, address: str) -> bool:
        """Whether a machine that is not terminated, or a load balancer, has the address."""
        row = self._db.execute(
            "SELECT 1 FROM objects WHERE kind = 'machine' AND json_extract(body, '$.private_ips[0]') = ?"
            " AND state <> 'terminated'"
            " UNION ALL SELECT 1 FROM objects WHERE kind = 'load balancer' AND json_extract(body, '$.address') = ?"
            " LIMIT 1",
            (address, address),
        ).fetchone()
        return row is not None

    def page(
        self, type_: type[R], wanted: Filter, limit: int = MAX_PAGE, cursor: str | None = None
    ) -> tuple[list[R], str | None]:
        """At most `limit` objects after `cursor`, and the cursor of the next page or None."""
        clause, values = where(type_, wanted)
        values += [_position(cursor), limit + 1]
        rows = self._db.execute(
            f"SELECT seq, body FROM objects WHERE {clause} AND seq > ? ORDER BY seq LIMIT ?", values
        ).fetchall()
        items = [type_.model_validate_json(row[1]) for row in rows[:limit]]
        return items, (str(rows[limit - 1][0]) if len(rows) > limit else None)

    def add(self, record: Record) -> None:
        """Insert a new object."""
        self._db.execute(
            "INSERT INTO objects (id, kind, name, state, network_id, subnet_id, cluster_id, zone, version, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (record.id, kind_of(type(record)), *self._row(record)),
        )
        self._write_tags(record)

    def save(self, record: Record) -> None:
        """Write a changed object."""
        self._db.execute(
            "UPDATE objects SET name = ?, state = ?, network_id = ?, subnet_id = ?, cluster_id = ?, zone = ?,"
            " version = ?, body = ? WHERE id = ?",
            (*self._row(record), record.id),
        )
        for table in ("tags", "part_tags"):
            self._db.execute(f"DELETE FROM {table} WHERE id = ?", (record.id,))
        self._write_tags(record)

    def remove(self, id: str) -> None:
        """Delete an object with its tags, routes and idempotency token."""
        self._db.execute("DELETE FROM objects WHERE id = ?", (id,))

    @property
    def version(self) -> int:
        """The number of the last write."""
        return int(self._db.execute("SELECT value FROM sequence").fetchone()[0])

    # -- idempotency

    def made_with(self, type_: type[R], request: Create) -> R | None:
        """The object that this request's token made before; raises `IdempotencyConflict` if it was with another body.

        A token lasts as long as its object: it never makes a second one beside the first, and a name-based token can
        make the object again once the first is gone.
        """
        if request.client_token is None:
            return None
        row = self._db.execute(
            "SELECT body_hash, id FROM tokens WHERE kind = ? AND token = ?", (kind_of(type_), request.client_token)
        ).fetchone()
        if row is None:
            return None
        found = self.get(type_, row[1])
        if found.state == State.TERMINATED:
            return None
        if row[0] != _body_hash(request):
            raise IdempotencyConflict(
                f"client_token was used to make {kind_of(type_)} {found.id} with other parameters", field="client_token"
            )
        if found.state == State.DELETING:
            raise Conflict(f"{kind_of(type_)} {found.id}, made with this client_token, is being deleted")
        return found

    def store_token(self, record: Record, request: Create) -> None:
        """Record that the request's token made the object."""
        if request.client_token is not None:
            self._db.execute(
                "INSERT OR REPLACE INTO tokens (kind, token, body_hash, id) VALUES (?, ?, ?, ?)",
                (kind_of(type(record)), request.client_token, _body_hash(request), record.id),
            )

    # -- access

    def access_token(self, digest: str) -> tuple[float, list[str] | None] | None:
        """When the token with this digest expires (seconds since 1970), and its operations or None for all."""
        row = self._db.execute(
            "SELECT expires_at, operations FROM access_tokens WHERE digest = ?", (digest,)
        ).fetchone()
        return None if row is None else (row[0], None if row[1] is None else json.loads(row[1]))

    def forget_access_tokens(self, expired_before: float) -> None:
        """Remove the tokens that expired before then (seconds since 1970)."""
        self._db.execute("DELETE FROM access_tokens WHERE expires_at < ?", (expired_before,))

    def add_access_token(self, digest: str, expires_at: float, operations: Sequence[str] | None) -> None:
        """Write a new token."""
        values = (digest, expires_at, None if operations is None else json.dumps(operations))
        self._db.execute("INSERT INTO access_tokens VALUES (?, ?, ?)", values)

    # -- limits

    def limits(self) -> dict[str, int]:
        """The limits that have been set."""
        return dict(self._db.execute("SELECT name, value FROM limits").fetchall())

    def set_limits(self, limits: Mapping[str, int]) -> None:
        """Set these limits; the others stay."""
        self._db.executemany("INSERT OR REPLACE INTO limits VALUES (?, ?)", limits.items())

    # -- routes

    def routes(self, table_id: str, limit: int = -1, cursor: str | None = None) -> list[Route]:
        """Routes of a table by destination, after `cursor`; blackholes are those whose machine is gone."""
        rows = self._db.execute(
            "SELECT r.destination_cidr, r.next_hop_machine_id, o.state FROM routes r"
            " LEFT JOIN objects o ON o.id = r.next_hop_machine_id"
            " WHERE r.route_table_id = ? AND r.destination_cidr > ? ORDER BY r.destination_cidr LIMIT ?",
            (table_id, cursor or "", limit),
        )
        return [
            Route(
                destination_cidr=destination,
                next_hop_machine_id=machine,
                state="blackhole" if state in (None, State.TERMINATED.value) else "active",
            )
            for destination, machine, state in rows
        ]

    def count_routes(self, table_id: str) -> int:
        """The number of the table's routes."""
        row = self._db.execute("SELECT count(*) FROM routes WHERE route_table_id = ?", (table_id,)).fetchone()
        return int(row[0])

    def route_target(self, table_id: str, destination: str) -> str | None:
        """The machine that the route leads to, or None if there is no such route."""
        row = self._db.execute(
            "SELECT next_hop_machine_id FROM routes WHERE route_table_id = ? AND destination_cidr = ?",
            (table_id, destination),
        ).fetchone()
        return None if row is None else str(row[0])

    def destinations(self, table_id: str, machine_id: str) -> list[str]:
        """The CIDRs that the table routes to the machine."""
        rows = self._db.execute(
            "SELECT destination_cidr FROM routes WHERE route_table_id = ? AND next_hop_machine_id = ?"
            " ORDER BY destination_cidr",
            (table_id, machine_id),
        )
        return [row[0] for row in rows]

    def add_route(self, table_id: str, destination: str, machine_id: str) -> None:
        """Write a new route."""
        self._db.execute("INSERT INTO routes VALUES (?, ?, ?)", (table_id, destination, machine_id))

    def remove_route(self, table_id: str, destination: str) -> bool:
        """Delete a route; False if there was none."""
        return (
            self._db.execute(
                "DELETE FROM routes WHERE route_table_id = ? AND destination_cidr = ?", (table_id, destination)
            ).rowcount
            > 0
        )

    # -- helpers

    def _row(self, record: Record) -> tuple[Any, ...]:
        self._db.execute("UPDATE sequence SET value = value + 1")
        columns = (getattr(record, column, None) for column in COLUMNS)
        return (record.name, record.state.value, *columns, self.version, record.model_dump_json())

    def _write_tags(self, record: Record) -> None:
        self._db.executemany("INSERT INTO tags VALUES (?, ?, ?)", [(record.id, k, v) for k, v in record.tags.items()])
        if isinstance(record, LoadBalancerRecord):
            parts = [(record.id, k, v) for k, v in record.part_tags()]
            self._db.executemany("INSERT INTO part_tags VALUES (?, ?, ?)", parts)


class Store:
    """The database. Safe to use from any thread; calls wait for each other."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.execute("PRAGMA busy_timeout = 5000")
        self._db.executescript(SCHEMA)
        self._lock = threading.Lock()
        self._observers: list[Callable[[], None]] = []

    def observe(self, callback: Callable[[], None]) -> None:
        """Call `callback` (from the writer's thread, so it must be quick) after each committed write."""
        self._observers.append(callback)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that sees one state of the database."""
        with self._lock:
            yield Session(self._db)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session whose writes are all committed when the block ends, or none if it raises."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield Session(self._db)
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        for callback in self._observers:
            callback()

    def close(self) -> None:
        """Close the database file."""
        with self._lock:
            self._db.close()


def update_object(session: Session, record: R, request: Update) -> R:
    """Apply the request's name and tags, and save."""
    changed = record.model_copy(update=request.model_dump(include={"name", "tags"}, exclude_none=True))
    if changed != record:
        session.save(changed)
    return changed


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal() or len(cursor) > 18:
        raise InvalidParameter(f"{cursor!r} is not a cursor from a page", field="cursor")
    return int(cursor)


def _body_hash(request: Create) -> str:
    body = json.dumps(request.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(body.encode()).hexdigest()

"""A stack's state: what exists, kept in Pulumi's checkpoint form, with a journal so that a crash loses nothing.

`state.json` has the shape of `pulumi stack export`. While a run changes things, every step is first appended to
`journal.jsonl`: `begin` before a side effect, then `put` or `remove` and `end` after it. A run that ends, and the next
one that starts, folds the journal into state.json (written beside it and renamed, so never half there). A `begin`
without an `end` is a pending operation: nobody knows whether it happened.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from local.engine.stack.form import deployment_of
from local.engine.stack.journal import Journal, entries
from local.engine.stack.references import remaining
from local.engine.stack.resource import ResourceState, from_json, to_json, to_plain_json
from local.engine.stack.secrets import Crypter
from local.engine.stack.snapshot import Operation, PendingOperation, Snapshot

STATE_FILE: Final = "state.json"
BACKUP_FILE: Final = "state.json.bak"
"""What state.json was before it was last written anew: before the last run that changed something, or an import."""
JOURNAL_FILE: Final = "journal.jsonl"
VERSION: Final = "v3.260.0"
"""The CLI version whose state form this is; the CLI refuses a manifest without one."""

Json = Any


class StateError(Exception):
    """The state cannot be read; the message names the file."""


class Store:
    """The state in memory and on disk. A change outlives a kill when its method returns. Thread-safe."""

    def __init__(
        self,
        directory: Path,
        crypter: Crypter,
        *,
        salt: str,
        writable: bool,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Read what is there; `writable` folds a journal that an earlier run left. Raises StateError, SecretsError."""
        self._directory = directory
        self._crypter = crypter
        self._salt = salt
        self._clock = clock or (lambda: datetime.now(UTC))
        self._lock = threading.Lock()
        self._journal = Journal(directory / JOURNAL_FILE)
        self.snapshot, self._written = _load(directory, crypter)
        self._begun = False
        """Whether the journal tells which state it continues."""
        self._closed = False
        self._sequence = max(self.snapshot.pending, default=0)
        if writable:
            directory.mkdir(parents=True, exist_ok=True)
            if (directory / JOURNAL_FILE).exists():
                self.compact()

    def now(self) -> str:
        """The time as the state writes it (RFC 3339, UTC)."""
        return _timestamp(self._clock())

    def begin(self, operation: Operation, resource: ResourceState) -> int:
        """Note that a side effect is about to happen. The number ends it."""
        with self._lock:
            self._sequence += 1
            number = self._sequence
            pending = PendingOperation(operation, resource)
            self._note({"op": "begin", "number": number, "pending": _pending_json(pending, self._crypter)})
            self.snapshot.pending[number] = pending
            return number

    def end(self, number: int) -> None:
        """Note that a side effect happened or certainly did not."""
        with self._lock:
            self._note({"op": "end", "number": number})
            self.snapshot.pending.pop(number, None)

    def settle(self, urn: str) -> None:
        """End the earlier creates of a resource that an idempotent one has now caught up with."""
        for number, pending in list(self.snapshot.pending.items()):
            if pending.resource.urn == urn and pending.operation is Operation.CREATING:
                self.end(number)

    def put(self, resource: ResourceState, *, ends: int | None = None, condemns: ResourceState | None = None) -> None:
        """Add or change a resource, and in the same breath end the operation that made it so.

        What it `condemns`, its predecessor, stays beside it under the same URN until it is deleted.
        """
        with self._lock:
            entry: Json = {"op": "put", "resource": to_json(resource, self._crypter), "ends": ends}
            doomed = None
            if condemns is not None:
                # What it refers to may have been renamed since it was looked up.
                doomed = replace(self.snapshot.resources.get(condemns.key, condemns), delete=True)
            if doomed is not None:
                entry["condemned"] = to_json(doomed, self._crypter)
            self._note(entry)
            self.snapshot.put(resource, ends, doomed)

    def rename(self, old: str, renamed: ResourceState) -> None:
        """Put a resource in the place of the one whose URN was `old`; whatever refers to it follows."""
        with self._lock:
            self._note({"op": "rename", "old": old, "resource": to_json(renamed, self._crypter)})
            self.snapshot.rename(old, renamed)

    def remove(self, resource: ResourceState, *, ends: int | None = None) -> None:
        """Forget a resource."""
        with self._lock:
            self._note({"op": "remove", "key": list(resource.key), "ends": ends})
            self.snapshot.remove(resource.key, ends)

    def _note(self, entry: Json) -> None:
        if self._closed:
            raise StateError("the run is over")
        if not self._begun:
            # Killed between writing state.json and removing the journal, a run leaves one that the state tells already.
            self._journal.append({"op": "continues", "state": self._written})
            self._begun = True
        self._journal.append(entry)

    def export(self, *, show_secrets: bool = False) -> Json:
        """The state as `pulumi stack export` prints it; `pulumi stack import` takes it."""
        with self._lock:
            return self._document(show_secrets=show_secrets)

    def compact(self) -> None:
        """Write state.json anew and drop the journal; nothing is written where nothing changed."""
        with self._lock:
            journal = self._directory / JOURNAL_FILE
            if not journal.exists() and (self._directory / STATE_FILE).exists():
                return
            self._written = _write(self._directory, self._document())
            self._journal.remove()
            self._begun = False
            # As they are counted when this is read again: the journal from here on ends them by these numbers.
            self.snapshot.pending = _numbered(self.snapshot.pending.values())

    def _document(self, *, show_secrets: bool = False) -> Json:
        return _document(self.snapshot, self._crypter, self._salt, self._clock(), show_secrets=show_secrets)

    def close(self) -> None:
        """Let go of the journal's file; from now on a change raises StateError.

        Of a run that was cut short a step may still be ending, and the stack may be another run's by then.
        """
        with self._lock:
            self._closed = True
            self._journal.close()


def _numbered(pending: Iterable[PendingOperation]) -> dict[int, PendingOperation]:
    return dict(enumerate(pending, start=1))


def snapshot_of(deployment: Json, crypter: Crypter) -> Snapshot:
    """What a well-formed `deployment` holds. Raises SecretsError, ValueError."""
    snapshot = Snapshot()
    for data in deployment.get("resources") or ():
        snapshot.put(from_json(data, crypter))
    snapshot.pending = _numbered(
        _pending_from_json(data, crypter) for data in deployment.get("pending_operations") or ()
    )
    return snapshot


def _load(directory: Path, crypter: Crypter) -> tuple[Snapshot, str]:
    """What state and journal tell together, and the digest of the state's text."""
    path = journal = directory / JOURNAL_FILE
    try:
        # The journal first: a run that ends meanwhile folds it into the state, which by its digest is seen then.
        first, *told = [*entries(journal)] or [None]
        path = directory / STATE_FILE
        text = _bytes(path)
        snapshot = snapshot_of(deployment_of(json.loads(text)), crypter) if text else Snapshot()
        path = journal
        if first is not None and first["op"] != "continues":
            raise ValueError("it does not say which state it continues")
        if told and first["state"] == _digest(text):
            for entry in told:
                _replay(snapshot, entry, crypter)
        elif told and first["state"] != _digest(_bytes(directory / BACKUP_FILE)):
            if next(entries(journal), None) != first:
                # Whole runs went by between the two reads.
                return _load(directory, crypter)
            raise ValueError(f"it continues another state than {STATE_FILE}; put that one back, or `stack import` one")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise StateError(f"{path} is not a state that this engine can read: {type(error).__name__}: {error}") from error
    return snapshot, _digest(text)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()


def _replay(snapshot: Snapshot, entry: Json, crypter: Crypter) -> None:
    match entry["op"]:
        case "begin":
            snapshot.pending[entry["number"]] = _pending_from_json(entry["pending"], crypter)
        case "end":
            snapshot.pending.pop(entry["number"], None)
        case "put":
            doomed = from_json(entry["condemned"], crypter) if "condemned" in entry else None
            snapshot.put(from_json(entry["resource"], crypter), entry["ends"], doomed)
        case "remove":
            snapshot.remove(_key(entry), entry["ends"])
        case "rename":
            snapshot.rename(entry["old"], from_json(entry["resource"], crypter))
        case other:
            raise ValueError(f"unknown journal entry {other!r}")


def _key(entry: Json) -> tuple[str, str]:
    urn, identity = entry["key"]
    return urn, identity


def replace_state(directory: Path, snapshot: Snapshot, crypter: Crypter, salt: str) -> None:
    """Put another state in the place of what is there, journal and all, readable or not; both stay beside as `.bak`."""
    _write(directory, _document(snapshot, crypter, salt, datetime.now(UTC), show_secrets=False))
    journal = directory / JOURNAL_FILE
    if journal.exists():
        # Only now: until the state has changed it is needed, and from then on it is not read.
        journal.replace(journal.with_name(f"{JOURNAL_FILE}.bak"))


def _write(directory: Path, document: Json) -> str:
    """Write state.json beside its place and rename it: it is never half there, nor ever missing. Returns its digest."""
    directory.mkdir(parents=True, exist_ok=True)
    path, backup = directory / STATE_FILE, directory / BACKUP_FILE
    temporary = path.with_suffix(".tmp")
    text = (json.dumps(document, indent=4) + "\n").encode()
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        backup.unlink(missing_ok=True)
        os.link(path, backup)
    temporary.replace(path)
    return _digest(text)


def _document(snapshot: Snapshot, crypter: Crypter, salt: str, now: datetime, *, show_secrets: bool) -> Json:
    def shown(resource: ResourceState) -> Json:
        return to_plain_json(resource) if show_secrets else to_json(resource, crypter)

    resources = snapshot.ordered()
    there = {r.urn for r in resources}
    deployment: Json = {
        "manifest": {
            "time": _timestamp(now),
            # The CLI checks that a state was made by a program that knows its version: the version's hash.
            "magic": sha256(VERSION.encode()).hexdigest(),
            "version": VERSION,
        },
        "secrets_providers": {"type": "passphrase", "state": {"salt": salt}},
        "resources": [shown(remaining(r, there)) for r in resources],
    }
    if snapshot.pending:
        deployment["pending_operations"] = [
            {"resource": shown(p.resource), "type": str(p.operation)} for p in snapshot.pending.values()
        ]
    return {"version": 3, "deployment": deployment | {"metadata": {}}}


def _pending_json(pending: PendingOperation, crypter: Crypter) -> Json:
    return {"resource": to_json(pending.resource, crypter), "type": str(pending.operation)}


def _pending_from_json(data: Json, crypter: Crypter) -> PendingOperation:
    return PendingOperation(Operation(data["type"]), from_json(data["resource"], crypter))


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

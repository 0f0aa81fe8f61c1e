"""A stack's state in Pulumi's checkpoint form, with a journal so that a crash loses nothing.

`state.json` has the form of `pulumi stack export`. While a run changes things, every step is first appended to
`journal.jsonl`: `begin` before a side effect, then `put` or `remove` and `end` after it. At its end, and at the start
of the next run, the journal is folded into state.json (written to another file and renamed, so never partial). A
`begin` without an `end` is a pending operation: its outcome is unknown.
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
"""The previous state.json: from before the last run that changed something, or an import."""
JOURNAL_FILE: Final = "journal.jsonl"
VERSION: Final = "v3.260.0"
"""The CLI version whose state form this is; the CLI refuses a manifest without one."""

Json = Any


class StateError(Exception):
    """The state is not readable; the message names the file."""


class Store:
    """The state in memory and on disk. A change is crash-safe when its method returns. Thread-safe."""

    def __init__(
        self,
        directory: Path,
        crypter: Crypter,
        *,
        salt: str,
        writable: bool,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Read the existing state; `writable` folds the journal of an earlier run. Raises StateError, SecretsError."""
        self._directory = directory
        self._crypter = crypter
        self._salt = salt
        self._clock = clock or (lambda: datetime.now(UTC))
        self._lock = threading.Lock()
        self._journal = Journal(directory / JOURNAL_FILE)
        self.snapshot, self._written = _load(directory, crypter)
        self._begun = False
        """Whether the journal names the state that it continues."""
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
        """Record that a side effect is about to happen. The returned number ends it."""
        with self._lock:
            self._sequence += 1
            number = self._sequence
            pending = PendingOperation(operation, resource)
            self._note({"op": "begin", "number": number, "pending": _pending_json(pending, self._crypter)})
            self.snapshot.pending[number] = pending
            return number

    def end(self, number: int) -> None:
        """Record that a side effect happened, or certainly did not."""
        with self._lock:
            self._note({"op": "end", "number": number})
            self.snapshot.pending.pop(number, None)

    def settle(self, urn: str) -> None:
        """End the earlier creates of a resource that an idempotent one has completed."""
        for number, pending in list(self.snapshot.pending.items()):
            if pending.resource.urn == urn and pending.operation is Operation.CREATING:
                self.end(number)

    def put(self, resource: ResourceState, *, ends: int | None = None, replaced: ResourceState | None = None) -> None:
        """Add or change a resource, and end its operation in the same entry.

        The `replaced` one stays beside it under the same URN until it is deleted.
        """
        with self._lock:
            entry: Json = {"op": "put", "resource": to_json(resource, self._crypter), "ends": ends}
            old = None
            if replaced is not None:
                # Resources that it refers to may have been renamed since it was read.
                old = replace(self.snapshot.resources.get(replaced.key, replaced), delete=True)
            if old is not None:
                entry["condemned"] = to_json(old, self._crypter)
            self._note(entry)
            self.snapshot.put(resource, ends, old)

    def rename(self, old: str, renamed: ResourceState) -> None:
        """Replace the resource that had the URN `old`; references to it follow."""
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
            # A run killed between writing state.json and removing the journal leaves a journal already in the state.
            self._journal.append({"op": "continues", "state": self._written})
            self._begun = True
        self._journal.append(entry)

    def export(self, *, show_secrets: bool = False) -> Json:
        """The state in the form of `pulumi stack export`, which `pulumi stack import` accepts."""
        with self._lock:
            return self._document(show_secrets=show_secrets)

    def compact(self) -> None:
        """Write state.json and drop the journal; nothing is written if nothing changed."""
        with self._lock:
            journal = self._directory / JOURNAL_FILE
            if not journal.exists() and (self._directory / STATE_FILE).exists():
                return
            first = next(entries(journal), None)
            # Otherwise the state has the journal already. Written again, it would no longer be known as its successor.
            if first is None or first["state"] == self._written:
                self._written = _write(self._directory, self._document())
            self._journal.remove()
            self._begun = False
            # Renumber the operations as reading will: later entries of the journal refer to these numbers.
            self.snapshot.pending = _numbered(self.snapshot.pending.values())

    def _document(self, *, show_secrets: bool = False) -> Json:
        return _document(self.snapshot, self._crypter, self._salt, self._clock(), show_secrets=show_secrets)

    def close(self) -> None:
        """Close the journal; any later change raises StateError.

        A step of an interrupted run may still end later, when another run may already own the stack.
        """
        with self._lock:
            self._closed = True
            self._journal.close()


def _numbered(pending: Iterable[PendingOperation]) -> dict[int, PendingOperation]:
    return dict(enumerate(pending, start=1))


def snapshot_of(deployment: Json, crypter: Crypter) -> Snapshot:
    """The content of a well-formed `deployment`. Raises SecretsError, ValueError."""
    snapshot = Snapshot()
    for data in deployment.get("resources") or ():
        snapshot.put(from_json(data, crypter))
    snapshot.pending = _numbered(
        _pending_from_json(data, crypter) for data in deployment.get("pending_operations") or ()
    )
    return snapshot


def _load(directory: Path, crypter: Crypter) -> tuple[Snapshot, str]:
    """The state and journal together, and the digest of the state's text."""
    path = journal = directory / JOURNAL_FILE
    try:
        # The journal first: if a run ends meanwhile and folds it into the state, the digest shows that.
        first, *rest = [*entries(journal)] or [None]
        path = directory / STATE_FILE
        text = _bytes(path)
        snapshot = snapshot_of(deployment_of(json.loads(text)), crypter) if text else Snapshot()
        path = journal
        if first is not None and first["op"] != "continues":
            raise ValueError("it does not name the state that it continues")
        if rest and first["state"] == _digest(text):
            for entry in rest:
                _replay(snapshot, entry, crypter)
        elif rest and first["state"] != _digest(_bytes(directory / BACKUP_FILE)):
            if next(entries(journal), None) != first:
                # Whole runs happened between the two reads.
                return _load(directory, crypter)
            raise ValueError(f"it continues a state other than {STATE_FILE}; restore that one, or use `stack import`")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise StateError(f"{path} is not a valid state: {type(error).__name__}: {error}") from error
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
            predecessor = from_json(entry["condemned"], crypter) if "condemned" in entry else None
            snapshot.put(from_json(entry["resource"], crypter), entry["ends"], predecessor)
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
    """Replace state and journal, readable or not; both are kept beside the new ones as `.bak`."""
    _write(directory, _document(snapshot, crypter, salt, datetime.now(UTC), show_secrets=False))
    journal = directory / JOURNAL_FILE
    if journal.exists():
        # Not earlier: the journal is valid until the state has changed, and ignored from then on.
        journal.replace(journal.with_name(f"{JOURNAL_FILE}.bak"))


def _write(directory: Path, document: Json) -> str:
    """Write state.json to another file and rename it: it is never partial or missing. Returns its digest."""
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
            # The CLI checks that a program which knows the version made the state: the magic is the version's hash.
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

"""Lists the stacks of a state folder: `stack ls`. Nothing is decrypted, so no passphrase is needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.engine.stack.lock import is_held
from local.engine.stack.session import PlaceholderCrypter
from local.engine.stack.state import STATE_FILE, Store


@dataclass(frozen=True, slots=True)
class StackSummary:
    """One stack. `last_update` as its state has it (RFC 3339, UTC); "" before the first."""

    name: str
    last_update: str
    resources: int
    in_progress: bool

    def to_json(self) -> dict[str, Any]:
        """In the CLI's form."""
        return {
            "name": self.name,
            "current": False,
            "lastUpdate": self.last_update,
            "updateInProgress": self.in_progress,
            "resourceCount": self.resources,
        }


def stacks_in(state_dir: Path) -> list[StackSummary]:
    """All stacks that have a state, by name. Raises StateError for a damaged one."""
    return [_summary(path.parent) for path in sorted(state_dir.glob(f"stacks/*/{STATE_FILE}"))]


def _summary(directory: Path) -> StackSummary:
    snapshot = Store(directory, PlaceholderCrypter(), salt="", writable=False).snapshot
    manifest = json.loads((directory / STATE_FILE).read_text())["deployment"].get("manifest") or {}
    resources = [r for r in snapshot.all() if not r.delete]
    return StackSummary(directory.name, manifest.get("time", ""), len(resources), is_held(directory))

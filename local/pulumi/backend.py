"""Reads what the file backend of Pulumi's CLI holds for a stack, without the CLI: state, locks, pending operations.

A killed run of the CLI leaves a lock, which only `pulumi cancel` removes, and operations with unknown outcome.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from local.plugins.values import SECRET, SIGNATURE

BACKEND_FOLDER: Final = "pulumi"


class StateError(Exception):
    """A stack's state or lock is not as Pulumi writes it; the message names the file and what to do."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of a run of the CLI: its process, host and start."""

    pid: int
    host: str
    since: str

    @property
    def is_here(self) -> bool:
        """Whether the run is on this machine."""
        return self.host == socket.gethostname()

    @property
    def alive(self) -> bool:
        """Whether the run may still be alive; for another machine that is unknown."""
        if not self.is_here:
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True  # another user's process
        return True


def deployment(stack_dir: Path) -> tuple[Path, dict[str, Any]] | None:
    """The file of the stack's state and the deployment in it; None if there is none. Raises StateError."""
    for path in (stack_dir / BACKEND_FOLDER).glob(f".pulumi/stacks/**/{stack_dir.name}.json"):
        try:
            found = json.loads(path.read_text())["checkpoint"].get("latest") or {}
            # What the functions below read.
            _ = [each["urn"] for each in found.get("resources") or ()]
            _ = [each["resource"]["urn"] for each in found.get("pending_operations") or ()]
        except FileNotFoundError:
            continue  # another run has just removed it
        except (AttributeError, KeyError, TypeError, ValueError, OSError) as error:
            raise StateError(f"{path} is not a readable Pulumi state: {error}") from error
        return path, found
    return None


def is_in_use(stack_dir: Path) -> bool:
    """Whether the stack has resources or operations with unknown outcome. Raises StateError."""
    found = deployment(stack_dir)
    return found is not None and bool(found[1].get("resources") or found[1].get("pending_operations"))


def masked_outputs(stack_dir: Path) -> dict[str, Any]:
    """The stack's outputs, [secret] for secrets; empty before its first `up`. Raises StateError."""
    _, found = deployment(stack_dir) or (None, {})
    for resource in found.get("resources") or ():
        if resource.get("type") == "pulumi:pulumi:Stack" and not resource.get("delete"):
            return {name: _masked(value) for name, value in (resource.get("outputs") or {}).items()}
    return {}


def salt(stack_dir: Path) -> tuple[Path, str] | None:
    """The salt of the passphrase that encrypts the stack's state, and the state's file. Raises StateError."""
    if (found := deployment(stack_dir)) is None:
        return None
    provider = found[1].get("secrets_providers") or {}
    text = str((provider.get("state") or {}).get("salt", ""))
    return (found[0], text) if text else None


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return "[secret]" if value.get(SIGNATURE) == SECRET else {k: _masked(v) for k, v in value.items()}
    return [_masked(v) for v in value] if isinstance(value, list) else value


def locks(stack_dir: Path) -> Iterator[Lock]:
    """The locks of the stack. Raises StateError."""
    for path in sorted((stack_dir / BACKEND_FOLDER).glob(f".pulumi/locks/**/{stack_dir.name}/*.json")):
        try:
            found = json.loads(path.read_text())
            yield Lock(int(found["pid"]), str(found["hostname"]), str(found["timestamp"]).partition(".")[0])
        except FileNotFoundError:
            continue  # its run has just ended
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise StateError(
                f"{path} is not a readable lock of the Pulumi CLI: {error}; if no run changes stack "
                f'{stack_dir.name}, remove the lock: make pulumi STACK={stack_dir.name} ARGS="cancel --yes"'
            ) from error


def held_by(lock: Lock, stack: str) -> str:
    """What to do about the lock of a run that may be alive."""
    gone = f'; if that is no run of Pulumi, or its machine is gone: make pulumi STACK={stack} ARGS="cancel --yes"'
    run = f"process {lock.pid} on {lock.host}, since {lock.since}"
    return f"another run is changing stack {stack} ({run}): wait for it, or press Ctrl-C where it runs{gone}"


def killed_creates(stack_dir: Path) -> list[str]:
    """The names of the objects whose creation was killed. Raises StateError."""
    _, found = deployment(stack_dir) or (None, {})
    pending = found.get("pending_operations") or ()
    return [each["resource"]["urn"].rpartition("::")[2] for each in pending if each["type"] == "creating"]

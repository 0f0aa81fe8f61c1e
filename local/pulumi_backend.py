"""Reads what the file backend of Pulumi's CLI holds for a stack, without the CLI: state, locks, pending operations.

A killed run of the CLI leaves a lock, which only `pulumi cancel` removes, and operations with unknown outcome. The CLI
reports both, but not how to reach its backend and passphrase from a shell.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from local.engine.stack.secrets import PASSPHRASE_VARIABLE
from local.engine.stack.session import PASSPHRASE_FILE
from local.engine.stack.state import StateError
from local.plugins.urn import name_of

BACKEND_FOLDER: Final = "pulumi"


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


def checkpoint(stack_dir: Path) -> tuple[Path, dict[str, Any]] | None:
    """The file of the stack's state and its content; None if there is none. Raises StateError."""
    for path in (stack_dir / BACKEND_FOLDER).glob(f".pulumi/stacks/**/{stack_dir.name}.json"):
        try:
            data = json.loads(path.read_text())
            return path, {"version": data["version"], "deployment": data["checkpoint"].get("latest")}
        except FileNotFoundError:
            continue  # another run has just removed it
        except (AttributeError, KeyError, TypeError, ValueError, OSError) as error:
            raise StateError(f"{path} is not a readable Pulumi state: {error}") from error
    return None


def salt(deployment: Any) -> str:
    """The salt of the passphrase that encrypts a state; "" if it has none."""
    provider = (deployment or {}).get("secrets_providers") or {}
    return str((provider.get("state") or {}).get("salt", ""))


def locks(stack_dir: Path) -> Iterator[Lock]:
    """The locks of the stack. Raises StateError."""
    for path in sorted((stack_dir / BACKEND_FOLDER).glob(f".pulumi/locks/**/{stack_dir.name}/*.json")):
        try:
            found = json.loads(path.read_text())
            yield Lock(int(found["pid"]), str(found["hostname"]), str(found["timestamp"]))
        except FileNotFoundError:
            continue  # its run has just ended
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise StateError(
                f"{path} is not a readable lock of the Pulumi CLI: {error}; if no run changes stack "
                f"{stack_dir.name}, remove the lock: {_cancel(stack_dir)}"
            ) from error


def ways_past_locks(stack_dir: Path) -> Iterator[str]:
    """How to resolve each lock of the stack. Raises StateError."""
    stack = stack_dir.name
    for lock in locks(stack_dir):
        run = f"process {lock.pid} on {lock.host}, since {lock.since}"
        if not lock.alive:
            yield f"a run of stack {stack} was killed ({run}); remove its lock: {_cancel(stack_dir)}"
            continue
        gone = "" if lock.is_here else f"; if that machine or process is gone, remove its lock: {_cancel(stack_dir)}"
        yield f"another run is changing stack {stack} ({run}): wait for it, or press Ctrl-C where it runs{gone}"


def ways_out(stack_dir: Path) -> Iterator[str]:
    """How to resolve the locks and creates that runs have left, one line each.

    Raises StateError.
    """
    yield from ways_past_locks(stack_dir)
    found = checkpoint(stack_dir)
    pending = ((found[1]["deployment"] or {}).get("pending_operations") or []) if found else []
    if created := [name_of(each["resource"]["urn"]) for each in pending if each["type"] == "creating"]:
        clear = f'make refresh STACK={stack_dir.name} ENGINE=pulumi ARGS="--skip-preview --clear-pending-creates"'
        yield (
            f"a run was killed while it created {', '.join(created)}: `up` creates it again, which finds what was "
            f"made; afterwards, clear the pending create: {clear}"
        )


def _cancel(stack_dir: Path) -> str:
    """The shell command that removes a stack's locks with the CLI."""
    environment = [f"PULUMI_BACKEND_URL={(stack_dir / BACKEND_FOLDER).as_uri()}"]
    if PASSPHRASE_VARIABLE not in os.environ and not os.environ.get(f"{PASSPHRASE_VARIABLE}_FILE"):
        environment.append(f"{PASSPHRASE_VARIABLE}_FILE={stack_dir / PASSPHRASE_FILE}")
    words = ["pulumi", "cancel", "--yes", "--stack", stack_dir.name, "--cwd", str(stack_dir)]
    return shlex.join([*environment, *words])

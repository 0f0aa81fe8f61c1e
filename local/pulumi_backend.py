"""What the file backend of Pulumi's CLI holds of a stack, read without the CLI: its state, locks, pending operations.

Where a run of the CLI was killed, it leaves a lock, which only `pulumi cancel` takes away, and operations of which
nobody knows whether they happened. The CLI says that, but not how its backend and passphrase are reached from a shell.
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

from local.engine.stack.session import PASSPHRASE_FILE
from local.engine.stack.state import StateError
from local.engine.urn import name_of

BACKEND_FOLDER: Final = "pulumi"


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of a run of the CLI: its process, where that runs, and since when."""

    pid: int
    host: str
    since: str

    @property
    def alive(self) -> bool:
        """Whether the run may still go on: of another machine's nobody can tell."""
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True  # another user's
        return True


def checkpoint(stack_dir: Path) -> tuple[Path, dict[str, Any]] | None:
    """The file of the stack's state and what it says; None without one. Raises StateError."""
    for path in (stack_dir / BACKEND_FOLDER).glob(f".pulumi/stacks/**/{stack_dir.name}.json"):
        try:
            data = json.loads(path.read_text())
            return path, {"version": data["version"], "deployment": data["checkpoint"].get("latest")}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StateError(f"{path} is not a state of the CLI that can be read: {error}") from error
    return None


def salt(deployment: Any) -> str:
    """The salt of the passphrase that a state is encrypted with; "" where it has none."""
    provider = (deployment or {}).get("secrets_providers") or {}
    return str((provider.get("state") or {}).get("salt", ""))


def locks(stack_dir: Path) -> list[Lock]:
    """The locks of the stack."""
    return [
        Lock(int(found["pid"]), str(found["hostname"]), str(found["timestamp"]))
        for path in sorted((stack_dir / BACKEND_FOLDER).glob(f".pulumi/locks/**/{stack_dir.name}/*.json"))
        for found in [json.loads(path.read_text())]
    ]


def ways_past_locks(stack_dir: Path) -> Iterator[str]:
    """What to do about each lock of the stack."""
    stack = stack_dir.name
    for lock in locks(stack_dir):
        run = f"process {lock.pid} on {lock.host}, since {lock.since}"
        if lock.alive:
            yield f"another run changes stack {stack} ({run}): wait for it, or end it with Ctrl-C where it runs"
        else:
            command = _pulumi(stack_dir, "cancel", "--yes")
            yield f"a run of stack {stack} was killed ({run}); this takes its lock away: {command}"


def ways_out(stack_dir: Path) -> Iterator[str]:
    """What to do about the locks and the creates that runs have left, a line each; nothing where there are none."""
    yield from ways_past_locks(stack_dir)
    found = checkpoint(stack_dir)
    pending = ((found[1]["deployment"] or {}).get("pending_operations") or []) if found else []
    if created := [name_of(each["resource"]["urn"]) for each in pending if each["type"] == "creating"]:
        clear = f'make refresh STACK={stack_dir.name} ENGINE=pulumi ARGS="--skip-preview --clear-pending-creates"'
        yield (
            f"a run was killed while it created {', '.join(created)}: `up` creates it again, which finds what was "
            f"made; this forgets the interrupted one then: {clear}"
        )


def _pulumi(stack_dir: Path, *words: str) -> str:
    """A call of the CLI as it is written in a shell."""
    backend, passphrase = stack_dir / BACKEND_FOLDER, stack_dir / PASSPHRASE_FILE
    environment = [f"PULUMI_BACKEND_URL={backend.as_uri()}", f"PULUMI_CONFIG_PASSPHRASE_FILE={passphrase}"]
    return shlex.join([*environment, "pulumi", *words, "--stack", stack_dir.name, "--cwd", str(stack_dir)])

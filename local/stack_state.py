"""Reads a stack's state without its passphrase: whether anything exists, and the outputs with secrets masked.

The state is either the embedded engine's or the CLI's; both are in the stack's folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from local.engine.stack.form import deployment_of
from local.engine.stack.session import PlaceholderCrypter
from local.engine.stack.snapshot import Snapshot
from local.engine.stack.state import StateError, Store, snapshot_of
from local.plugins.json_values import mask
from local.plugins.urn import STACK_TYPE
from local.pulumi_backend import checkpoint


def is_in_use(stack_dir: Path) -> bool:
    """Whether the stack has resources or operations with unknown outcome."""
    return is_in_engine(stack_dir) or is_in_cli(stack_dir)


def is_in_engine(stack_dir: Path) -> bool:
    """Whether the embedded engine's state holds the stack."""
    return _holds(_of_engine(stack_dir))


def is_in_cli(stack_dir: Path) -> bool:
    """Whether the CLI's state holds the stack."""
    return _holds(_of_cli(stack_dir))


def masked_outputs(stack_dir: Path) -> dict[str, Any]:
    """The stack's outputs; empty before its first `up`."""
    snapshot = _of_cli(stack_dir) if is_in_cli(stack_dir) else _of_engine(stack_dir)
    stacks = [each for each in snapshot.live().values() if each.type == STACK_TYPE]
    return dict(mask(stacks[0].outputs)) if stacks else {}


def _holds(snapshot: Snapshot) -> bool:
    return bool(snapshot.resources or snapshot.pending)


def _of_engine(stack_dir: Path) -> Snapshot:
    return Store(stack_dir, PlaceholderCrypter(), salt="", writable=False).snapshot


def _of_cli(stack_dir: Path) -> Snapshot:
    """The state in the CLI's file backend, which has a file for each stack."""
    found = checkpoint(stack_dir)
    if found is None:
        return Snapshot()
    path, state = found
    try:
        return snapshot_of(deployment_of(state), PlaceholderCrypter())
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StateError(f"{path} is not a readable Pulumi state: {error}") from error

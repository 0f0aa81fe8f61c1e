"""What a stack's state says without its passphrase: whether anything exists, and the outputs with secrets masked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from local.engine.resource import mask
from local.engine.session import PlaceholderCrypter
from local.engine.state import Snapshot, Store
from local.engine.urn import STACK_TYPE


def is_in_use(stack_dir: Path) -> bool:
    """Whether the stack has resources, or operations of which nobody knows whether they happened."""
    snapshot = _snapshot(stack_dir)
    return bool(snapshot.resources or snapshot.pending)


def masked_outputs(stack_dir: Path) -> dict[str, Any]:
    """The stack's outputs; empty before its first `up`."""
    stacks = [each for each in _snapshot(stack_dir).live().values() if each.type == STACK_TYPE]
    return dict(mask(stacks[0].outputs)) if stacks else {}


def _snapshot(stack_dir: Path) -> Snapshot:
    return Store(stack_dir, PlaceholderCrypter(), salt="", writable=False).snapshot

"""Reserves a block of addresses for each site of this user, in one small file each: checkouts run side by side.

A reservation holds the path of the site's state folder. It ends when the site releases it or its folder is gone. Sites
of other users are not visible here: their sockets are in use, so the next block is tried.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.addresses import BLOCK_BASES, AddressBlock


class NoBlockError(Exception):
    """Every block is reserved, or the requested one belongs to another site; the message names the owner."""


def default_registry() -> Path:
    """The folder of this user's reservations."""
    state_home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state_home) / "cloud-controller" / "blocks"


@dataclass(frozen=True, slots=True)
class BlockRegistry:
    """The reservations in one folder. Safe to use from several processes."""

    directory: Path

    def prepare(self) -> None:
        """Create the folder; raises OSError if it is not writable."""
        with self._lock():
            pass

    def owner(self, block: AddressBlock) -> Path | None:
        """The state folder that owns the block, or None if it is free."""
        try:
            owner = self._file(block).read_text().strip()
        except FileNotFoundError:
            return None
        # Empty: its writer was killed before it wrote the path.
        return Path(owner) if owner and Path(owner).is_dir() else None

    def owners(self) -> dict[AddressBlock, Path]:
        """The reserved blocks in order, each with the state folder that owns it."""
        found = {block: self.owner(block) for block in map(AddressBlock, BLOCK_BASES)}
        return {block: owner for block, owner in found.items() if owner is not None}

    def reserve(self, block: AddressBlock, state_dir: Path) -> None:
        """Reserve this block; reserving it again is allowed. Raises `NoBlockError` if another site owns it."""
        with self._lock():
            owner = self.owner(block)
            if owner not in (None, state_dir):
                raise NoBlockError(f"the addresses 127.{block.base}.x belong to the site of {owner}")
            self._file(block).write_text(f"{state_dir}\n")

    def free_blocks(self, state_dir: Path) -> Iterator[AddressBlock]:
        """The blocks that the site may try: its own first, then the free ones."""
        owners = self.owners()
        yield from (block for block, owner in owners.items() if owner == state_dir)
        yield from (block for block in map(AddressBlock, BLOCK_BASES) if block not in owners)

    def release(self, state_dir: Path) -> None:
        """Release every block of the site."""
        with self._lock():
            for block, owner in self.owners().items():
                if owner == state_dir:
                    self._file(block).unlink()

    def describe(self) -> str:
        """The reserved blocks and their owners, for an error message."""
        return "; ".join(f"127.{block.base}.x: {owner}" for block, owner in self.owners().items()) or "none is reserved"

    def _file(self, block: AddressBlock) -> Path:
        return self.directory / str(block.base)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

"""Plans a commit's stack with Pulumi's CLI, without its state, its secrets and a cloud (`local.pulumi.rehearsal`)."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from cloud_stacks.outcome import Outcome, Problem, of_preview
from local.pulumi.rehearsal import Checkout, Rehearsal, RehearsalError
from local.pulumi.toolchain import Toolchain

Pack = tuple[Path, Mapping[str, Any] | None]
"""A policy pack's folder and its configuration."""


@contextmanager
def rehearsal(tools: Toolchain, stack: str) -> Iterator[Rehearsal]:
    """A folder for one stack, without resources yet."""
    with tempfile.TemporaryDirectory(prefix="cloud-stacks-") as folder:
        yield Rehearsal(tools, stack, Path(folder))


def preview(stack: Rehearsal, checkout: Checkout, packs: Sequence[Pack]) -> Outcome:
    """The plan of a commit from what is recorded. Raises ProjectError, RehearsalError, OSError."""
    events = stack.folder / "events.jsonl"
    events.unlink(missing_ok=True)
    options = ["--non-interactive", "--json", "--show-sames", "--event-log", str(events)]
    for index, (pack, config) in enumerate(packs):
        settings = stack.folder / f"policies-{index}.json"
        settings.write_text(json.dumps(config or {}))
        options += ["--policy-pack", str(pack), "--policy-pack-config", str(settings)]
    done = stack.run(checkout, "preview", *options)
    if not events.exists():
        return Outcome(stack.stack, (), (), (Problem("error", done.stderr.strip() or done.stdout.strip()),))
    # Not where the commit happens to be.
    folder = f"{checkout.project}{os.sep}"
    found = of_preview(done.stdout.replace(folder, ""), events.read_text().replace(folder, ""))
    return replace(found, stack=stack.stack)


def record(stack: Rehearsal, checkout: Checkout) -> None:
    """Record the resources of a commit whose preview succeeded. Raises ProjectError, RehearsalError, OSError."""
    done = stack.run(checkout, "up", "--non-interactive", "--yes", "--skip-preview", "--color", "never")
    if done.returncode != 0:
        raise RehearsalError(f"the resources of {stack.stack} could not be recorded:\n{done.stdout[-2000:]}")

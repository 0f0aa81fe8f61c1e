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

from cloud_stacks import recorded
from cloud_stacks.outcome import Outcome, Problem, of_preview
from local.pulumi.rehearsal import Checkout, Rehearsal, RehearsalError, Runs
from local.pulumi.toolchain import Toolchain

Pack = tuple[Path, Mapping[str, Any] | None]
"""A policy pack's folder and its configuration."""


@contextmanager
def rehearsal(tools: Toolchain, stack: str, runs: Runs) -> Iterator[Rehearsal]:
    """A folder for one stack, without resources yet."""
    with tempfile.TemporaryDirectory(prefix="cloud-stacks-") as folder:
        yield Rehearsal(tools, stack, Path(folder), runs)


def preview(stack: Rehearsal, checkout: Checkout, packs: Sequence[Pack]) -> Outcome:
    """The plan of a commit from what is recorded. Raises ProjectError, RehearsalError, OSError."""
    events, plan = _events(stack), _plan(stack)
    for file in (events, plan):
        file.unlink(missing_ok=True)
    # The plan is for `record`, and the only form that has secrets.
    options = ["--non-interactive", "--json", "--show-sames", "--event-log", str(events)]
    options += ["--save-plan", str(plan), "--show-secrets"]
    for index, (pack, config) in enumerate(packs):
        settings = stack.folder / f"policies-{index}.json"
        settings.write_text(json.dumps(config or {}))
        options += ["--policy-pack", str(pack), "--policy-pack-config", str(settings)]
    done = stack.preview(checkout, *options)
    if not events.exists():
        return Outcome(stack.stack, (), (), (Problem("error", done.stderr.strip() or done.stdout.strip()),))
    _digest(stack).write_text(done.stdout)
    # Not where the commit happens to be.
    folder = f"{checkout.project}{os.sep}"
    found = of_preview(done.stdout.replace(folder, ""), events.read_text().replace(folder, ""))
    if done.returncode != 0 and not any(f.fails for f in found.findings) and not found.has_error:
        why = done.stderr.strip() or f"pulumi ended with code {done.returncode}"
        found = replace(found, problems=(*found.problems, Problem("error", why)))
    return replace(found, stack=stack.stack)


def left(stack: Rehearsal, checkout: Checkout) -> list[Any]:
    """What the commit would leave, after a preview without errors: the resources of a state.

    Raises ProjectError, RehearsalError, OSError.
    """
    if not _plan(stack).exists():
        # The CLI writes none if a mandatory policy is violated.
        preview(stack, checkout, ())
    if not _plan(stack).exists():
        raise RehearsalError(f"pulumi preview of {stack.stack} wrote no plan")
    events = map(json.loads, _events(stack).read_text().splitlines())
    return recorded.resources(json.loads(_digest(stack).read_text()), events, json.loads(_plan(stack).read_text()))


def _digest(stack: Rehearsal) -> Path:
    return stack.folder / "digest.json"


def _events(stack: Rehearsal) -> Path:
    return stack.folder / "events.jsonl"


def _plan(stack: Rehearsal) -> Path:
    return stack.folder / "plan.json"

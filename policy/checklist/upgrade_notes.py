"""Rule: what a version of a cloud controller manager changes was taken note of before it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from policy.data import load
from policy.rules import ADVISORY, LOW, Stack, StackRule, setting
from policy.subjects import Subject
from policy.unknowns import Problem
from policy.vendors import vendor
from policy.workloads import WORKLOADS, Container, containers

_VERSION = re.compile(r"v?(\d+)\.(\d+)")


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Notes for the running version that `acknowledged` does not name."""
    acknowledged = {*(stack.config.get("acknowledged") or ())}
    for workload in stack.of(*WORKLOADS):
        for container in containers(workload):
            for note in load("upgrades")["notes"]:
                if note["id"] not in acknowledged:
                    yield workload, partial(_problem, container, note)


def _problem(container: Container, note: Mapping[str, Any]) -> str | None:
    found = vendor(container)
    if found is None or found.cloud != note["cloud"]:
        return None
    version, since = _parsed(found.tag), _parsed(note["since"])
    if version is None or since is None or version < since:
        return None
    return f"since {note['since']} {note['effect']}: {note['do']}, then acknowledge {note['id']}"


def _parsed(text: str) -> tuple[int, int] | None:
    found = _VERSION.match(text)
    return (int(found[1]), int(found[2])) if found else None


UPGRADE_NOTES_ACKNOWLEDGED = StackRule(
    "ccm-version-acknowledge-changes",
    problems,
    why=(
        "Some versions of cloud controller managers change defaults: how load balancers are billed, which kind they "
        "are, when a rollout continues. The change arrives with the image, on every Service at once."
    ),
    level=ADVISORY,
    settings={
        "acknowledged": setting("texts", "The names of the notes that were taken care of, as messages give them.", []),
    },
    title="Changes of a CCM's version are acknowledged",
    severity=LOW,
    lines=["11.1.5"],
    sections="4.1, 12.3",
    judges=(
        "For the version of a vendor's own cloud controller manager that the stack runs, every note of "
        "`policy/data/upgrades.json` up to it is among `acknowledged`. A preview does not show which version runs "
        "today, so a new stack acknowledges them once."
    ),
    unseen="Images by digest alone, and managers that the cloud runs.",
    tags=["versions"],
    remedy="Do what the note says, then add its name to `acknowledged` in the stack's policies.",
    url="https://kubernetes.io/releases/version-skew-policy/#cloud-controller-manager",
)

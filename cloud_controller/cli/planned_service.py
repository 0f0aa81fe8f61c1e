"""What becomes of each Service of the manifests: one outcome, from the actions of its plan. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cloud_controller.cli.service_files import Source
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controllers.service.plan import INVALID
from cloud_controller.kube import Object
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.plan import Action, ActionKind, Attention

CHANGES = 3
"""The exit code of `plan --detailed-exitcode` when there are changes. Not 2: argparse uses that for usage errors."""
ATTENTION = 4
"""Its exit code when an address is replaced or a Service is refused."""

_ADDRESS_CHANGES = "the address changes"
"""In the summary or the reason of every action that replaces a load balancer."""
_ANNOTATION = re.compile(r"annotation ([^\s:]+)")


class Outcome(StrEnum):
    """What would happen to a Service's load balancer."""

    REFUSED = "refused"
    REPLACED = "address replaced"
    DELETED = "deleted"
    CREATED = "created"
    CHANGED = "changed in place"
    UP_TO_DATE = "up to date"
    NOT_SERVED = "without a load balancer of this controller"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a Service is refused. `field`: the field or annotation that the reason names, or empty."""

    why: str
    field: str = ""

    @classmethod
    def of(cls, fault: InvalidConfiguration) -> Refusal:
        """The controller's refusal."""
        return cls(str(fault), fault.field)


@dataclass(frozen=True, slots=True)
class PlannedService:
    """A Service of the manifests, and the plan for it.

    - `source`: where it is; `earlier`: that is in the earlier manifests alone.
    - `warnings`: what the API server warns of.
    - `path`: the field that explains the outcome, as in `Source.lines`; empty if none does.
    """

    key: str
    source: Source
    outcome: Outcome
    actions: tuple[Action, ...] = ()
    refusal: Refusal | None = None
    path: str = ""
    earlier: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def acknowledgements(self) -> tuple[str, ...]:
        """The annotations that let a held change of its address happen, each as a line of YAML."""
        return tuple(dict.fromkeys(each.acknowledgement for each in self.actions if each.acknowledgement))

    @property
    def line(self) -> int:
        """The line of the field that explains the outcome, or where the Service begins."""
        return self.source.line_of(self.path)

    def to_json(self) -> dict[str, Any]:
        """Its entry in `--output json`."""
        out: dict[str, Any] = {
            "service": self.key,
            "file": self.source.file,
            "line": self.line,
            "document": self.source.document,
            "outcome": self.outcome.value,
        }
        if self.refusal:
            out["refusal"] = self.refusal.why
        if self.warnings:
            out["warnings"] = [*self.warnings]
        return {**out, "actions": [action.to_json() for action in self.actions]}


@dataclass(frozen=True, slots=True)
class ServicesPlan:
    """The plans of all Services of the manifests.

    `ignored`: the number of other objects. `notes`: what is true of all, such as what is assumed.
    """

    services: tuple[PlannedService, ...]
    ignored: int = 0
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[Outcome, int]:
        """The number of Services of each outcome that occurs, in the outcomes' order."""
        counted = Counter(each.outcome for each in self.services)
        return {outcome: counted[outcome] for outcome in Outcome if counted[outcome]}

    @property
    def exit_code(self) -> int:
        """The exit code of `--detailed-exitcode`."""
        found = set(self.counts)
        if found & {Outcome.REFUSED, Outcome.REPLACED}:
            return ATTENTION
        return CHANGES if found - {Outcome.UP_TO_DATE, Outcome.NOT_SERVED} else 0

    def to_json(self) -> dict[str, Any]:
        """The document of `--output json`."""
        return {
            "services": [each.to_json() for each in self.services],
            "counts": {outcome.value: number for outcome, number in self.counts.items()},
            "ignored": self.ignored,
            "notes": [*self.notes],
        }


def planned(
    key: str,
    source: Source,
    actions: Iterable[Action],
    *,
    wanted: bool,
    refusal: Refusal | None = None,
    annotations: Mapping[str, str] | None = None,
) -> PlannedService:
    """The Service with its outcome.

    `wanted`: it should have a load balancer of this controller. `annotations`: by the model's field that they set.
    """
    actions = tuple(actions)
    refusal = refusal or _refusal_in(actions)
    outcome = _outcome(actions, refusal, wanted=wanted)
    path = _path_of(refusal) if refusal else ""
    if outcome is Outcome.REPLACED:
        fields = (change.field for action in actions if replaces_address(action) for change in action.changes)
        names = (annotations[each] for each in fields if annotations and each in annotations)
        path = next((_annotation_path(name) for name in names), "")
    return PlannedService(key, source, outcome, actions, refusal, path)


def path_in(words: str) -> str:
    """The path of the annotation that these words name; empty if they name none."""
    named = _ANNOTATION.search(words)
    return _annotation_path(named[1]) if named else ""


def annotations_by_field(service: Object, catalogue: Catalogue) -> dict[str, str]:
    """The Service's annotations by the model's field that they set."""
    entries = {name: catalogue.entry(name) for name in service["metadata"].get("annotations") or {}}
    return {entry.sets: name for name, entry in entries.items() if entry}


def replaces_address(action: Action) -> bool:
    """Whether clients need a new address after the action."""
    texts = (action.summary, action.reason or "")
    return action.kind is ActionKind.REPLACE or any(_ADDRESS_CHANGES in text for text in texts)


def _outcome(actions: Sequence[Action], refusal: Refusal | None, *, wanted: bool) -> Outcome:
    if refusal is not None:
        return Outcome.REFUSED
    changes = [action for action in actions if action.kind is not ActionKind.IGNORE]
    if any(replaces_address(action) for action in changes):
        return Outcome.REPLACED
    whole = {action.kind for action in changes if action.target.count("/") == 2}
    if ActionKind.CREATE in whole:
        return Outcome.CREATED
    if changes:
        return Outcome.DELETED if ActionKind.DELETE in whole and not wanted else Outcome.CHANGED
    return Outcome.UP_TO_DATE if wanted else Outcome.NOT_SERVED


def _refusal_in(actions: Iterable[Action]) -> Refusal | None:
    """The fault that the plan ignores."""
    for action in actions:
        if action.attention is Attention.REFUSED:
            why = (action.reason or "").removeprefix(INVALID)
            return Refusal(why, why.partition(": ")[0])
    return None


def _path_of(refusal: Refusal) -> str:
    if refusal.field.startswith("spec."):
        return refusal.field
    return path_in(refusal.field) or path_in(refusal.why) or refusal.field


def _annotation_path(name: str) -> str:
    return f"metadata.annotations.{name}"

"""What will happen before it does: a plan is an ordered list of actions, each readable by a person and by a program.

A controller's `plan` function is pure and returns a `Plan`; its `apply` carries one out. The daemon, `pulumi preview`,
the command line and the pull-request report all read the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = Any
"""A value that JSON can hold."""


class ActionKind(StrEnum):
    """What an action does to its target."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    IGNORE = "ignore"


_SYMBOLS = {
    ActionKind.CREATE: "+",
    ActionKind.UPDATE: "~",
    ActionKind.REPLACE: "+-",
    ActionKind.DELETE: "-",
    ActionKind.IGNORE: " ",
}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a target, before and after; `None` stands for "not set"."""

    field: str
    before: Json
    after: Json

    def __str__(self) -> str:
        return f"{self.field}: {_shown(self.before)} -> {_shown(self.after)}"


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a plan.

    `target` names the object: `route/10.1.2.0/24`, `node/NAME`, `service/NAMESPACE/NAME[/listener/80/TCP]`.
    `reason` says why (required for `ignore`). `assumed` marks what was predicted without an observation, for example
    while the cluster does not exist yet. `operation` is the controller's own typed instruction for `apply`; it never
    leaves the process, so it is no part of the JSON form nor of equality.
    """

    kind: ActionKind
    target: str
    summary: str
    changes: tuple[FieldChange, ...] = ()
    reason: str | None = None
    assumed: bool = False
    operation: object = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind is ActionKind.IGNORE and not self.reason:
            raise ValueError(f"{self.target}: an ignored change needs a reason")

    def __str__(self) -> str:
        line = f"{_SYMBOLS[self.kind]:<2} {self.target}: {self.summary}"
        if self.reason:
            line += f" ({self.reason})"
        return f"{line} [assumed]" if self.assumed else line

    def to_json(self) -> dict[str, Json]:
        """The form that previews, policies and `--output json` read; keys without a value are left out."""
        out: dict[str, Json] = {"kind": self.kind.value, "target": self.target, "summary": self.summary}
        if self.changes:
            out["changes"] = [{"field": c.field, "before": c.before, "after": c.after} for c in self.changes]
        if self.reason:
            out["reason"] = self.reason
        if self.assumed:
            out["assumed"] = True
        return out


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions in the order in which they are applied."""

    actions: tuple[Action, ...] = ()

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __len__(self) -> int:
        return len(self.actions)

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.actions + other.actions)

    @classmethod
    def of(cls, actions: Iterable[Action]) -> Plan:
        """A plan of these actions, in this order."""
        return cls(tuple(actions))

    @property
    def changes(self) -> tuple[Action, ...]:
        """The actions that change something: all but `ignore`."""
        return tuple(a for a in self.actions if a.kind is not ActionKind.IGNORE)

    @property
    def counts(self) -> Mapping[ActionKind, int]:
        """How many actions there are of each kind that occurs."""
        counts: dict[ActionKind, int] = {}
        for action in self.actions:
            counts[action.kind] = counts.get(action.kind, 0) + 1
        return counts

    def to_json(self) -> list[dict[str, Json]]:
        """The ordered list of the actions' JSON forms."""
        return [action.to_json() for action in self.actions]

    def __str__(self) -> str:
        return "\n".join(str(action) for action in self.actions) or "nothing to do"


def _shown(value: Json) -> str:
    return "(none)" if value is None else str(value)

"""A plan: the ordered list of actions that a controller is about to carry out, readable by people and programs.

A controller's `plan` function is pure and returns a `Plan`; `apply` carries it out. The daemon, `pulumi preview`, the
command line and the pull-request report all read the same plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

Json = Any
"""Any JSON value."""

DIGEST_LENGTH = 12
"""Hexadecimal digits of a held action's digest."""


class ActionKind(StrEnum):
    """What an action does to its target."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    IGNORE = "ignore"


class Attention(StrEnum):
    """Why an object needs somebody's attention."""

    REFUSED = "refused"
    """The controller refuses it: a setting is invalid."""
    FAILED = "failed"
    """The cloud has failed to provide what it asks for."""
    ADDRESS_CHANGE_HELD = "address-change-held"
    """A change of its address waits for an acknowledgement."""
    NO_BACKENDS = "no-backends"
    """Its load balancer has nothing to send traffic to."""
    EXCLUDED = "excluded-by-label"
    """A label excludes all nodes that its load balancer could send traffic to; the last ones stay."""
    NO_HEALTHY_BACKEND = "no-healthy-backend"
    """All that its load balancer could send traffic to fails the health checks."""
    NO_READY_ENDPOINTS = "no-ready-endpoints"
    """Kubernetes knows nothing ready behind it. Only the metric has it: the health checks say more, but take calls."""
    NOT_SERVED = "not-served"
    """No controller has given it an address, and this one will not."""


_SYMBOLS = {
    ActionKind.CREATE: "+",
    ActionKind.UPDATE: "~",
    ActionKind.REPLACE: "+-",
    ActionKind.DELETE: "-",
    ActionKind.IGNORE: " ",
}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a target before and after; `None` means "not set"."""

    field: str
    before: Json
    after: Json

    def __str__(self) -> str:
        return f"{self.field}: {_shown(self.before)} -> {_shown(self.after)}"


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a plan.

    `target` names the object: `route/10.1.2.0/24`, `node/NAME`, `service/NAMESPACE/NAME[/listener/80/TCP]`.
    `reason` explains the action (required for `ignore`). `assumed` marks a prediction without an observation, for
    example while the cluster does not exist yet. `held` is the digest of an action that is not carried out until an
    administrator confirms it (`hold`); `confirmed` is that digest from then on. With `acknowledgement`, a line of YAML,
    the object's author releases it instead, by this annotation. `attention`: the action, or its absence, is a finding
    about the object. `operation` is the controller's own typed instruction
    for `apply`; it never leaves the process, so neither JSON nor equality includes it.
    """

    kind: ActionKind
    target: str
    summary: str
    changes: tuple[FieldChange, ...] = ()
    reason: str | None = None
    assumed: bool = False
    held: str | None = None
    confirmed: str | None = None
    acknowledgement: str | None = None
    attention: Attention | None = None
    operation: object = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind is ActionKind.IGNORE and not self.reason:
            raise ValueError(f"{self.target}: an action of kind ignore requires a reason")

    @property
    def pending(self) -> bool:
        """Whether the action changes something and is not held."""
        return self.kind is not ActionKind.IGNORE and self.held is None

    def __str__(self) -> str:
        line = f"{_SYMBOLS[self.kind]:<2} {self.target}: {self.summary}"
        if self.reason:
            line += f" ({self.reason})"
        if self.held:
            line += f" [held {self.held}]" if not self.acknowledgement else f" [held; annotate {self.acknowledgement}]"
        if self.confirmed:
            line += f" [confirmed {self.confirmed}]"
        return f"{line} [assumed]" if self.assumed else line

    def to_json(self) -> dict[str, Json]:
        """The JSON form that previews, policies and `--output json` use; unset keys are omitted."""
        out: dict[str, Json] = {"kind": self.kind.value, "target": self.target, "summary": self.summary}
        if self.changes:
            out["changes"] = [{"field": c.field, "before": c.before, "after": c.after} for c in self.changes]
        if self.reason:
            out["reason"] = self.reason
        if self.assumed:
            out["assumed"] = True
        if self.held:
            out["held"] = self.held
        if self.confirmed:
            out["confirmed"] = self.confirmed
        if self.acknowledgement:
            out["acknowledgement"] = self.acknowledgement
        if self.attention:
            out["attention"] = self.attention.value
        return out

    @classmethod
    def from_json(cls, entry: Mapping[str, Json]) -> Action:
        """Parse the JSON form, which has no operation; unknown keys are ignored."""
        return cls(
            ActionKind(entry["kind"]),
            entry["target"],
            entry["summary"],
            tuple(FieldChange(c["field"], c.get("before"), c.get("after")) for c in entry.get("changes", ())),
            reason=entry.get("reason"),
            assumed=entry.get("assumed", False),
            held=entry.get("held"),
            confirmed=entry.get("confirmed"),
            acknowledgement=entry.get("acknowledgement"),
            attention=Attention(entry["attention"]) if entry.get("attention") else None,
        )


def object_of(target: str) -> str:
    """The object that a target belongs to: `service/NAMESPACE/NAME`, `node/NAME`, `route/CIDR`."""
    parts = target.split("/")
    return "/".join(parts[:3]) if parts[0] in ("service", "route", "claim") else "/".join(parts[:2])


def hold(actions: Iterable[Action], subject: str, reason: str, *, in_steps: bool = False) -> list[Action]:
    """Hold these actions together: none is carried out until their common digest is confirmed.

    `subject`: a UID or another id that is never reused, so that a confirmation never covers a later object with the
    same name. `in_steps`: the actions are carried out one by one, and what is left of them keeps the digest. Ignored
    actions are not held.
    """
    actions = list(actions)
    held = [action for action in actions if action.kind is not ActionKind.IGNORE]
    lines = [] if in_steps else [f"{action.kind} {action.target} {action.summary}" for action in held]
    digest = hashlib.sha256("\0".join((subject, *lines)).encode()).hexdigest()[:DIGEST_LENGTH]
    return [replace(each, held=digest, reason=reason) if each in held else each for each in actions]


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions, in the order in which they are applied."""

    actions: tuple[Action, ...] = ()

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __len__(self) -> int:
        return len(self.actions)

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.actions + other.actions)

    @classmethod
    def of(cls, actions: Iterable[Action]) -> Plan:
        """A plan with these actions, in this order."""
        return cls(tuple(actions))

    @property
    def changes(self) -> tuple[Action, ...]:
        """The actions to carry out: all except ignored and held ones."""
        return tuple(a for a in self.actions if a.pending)

    @property
    def held(self) -> tuple[Action, ...]:
        """The actions that wait for confirmation by an administrator, or for an acknowledgement."""
        return tuple(a for a in self.actions if a.held)

    def released(self, confirmed: Collection[str]) -> Plan:
        """The plan with the held actions of these digests released."""

        def released(action: Action) -> Action:
            if action.held not in confirmed or action.acknowledgement:
                return action
            return replace(action, held=None, confirmed=action.held)

        return Plan(tuple(map(released, self.actions)))

    @property
    def counts(self) -> Mapping[ActionKind, int]:
        """The number of actions of each kind that occurs."""
        counts: dict[ActionKind, int] = {}
        for action in self.actions:
            counts[action.kind] = counts.get(action.kind, 0) + 1
        return counts

    def to_json(self) -> list[dict[str, Json]]:
        """The actions' JSON forms, in order."""
        return [action.to_json() for action in self.actions]

    def __str__(self) -> str:
        return "\n".join(str(action) for action in self.actions) or "nothing to do"


def _shown(value: Json) -> str:
    return "(none)" if value is None else str(value)

"""What a plan of Pulumi's CLI does: resources, findings, problems. Pure.

Two forms are read: engine events, one a line (`--event-log`, or `--json` of an update), which alone have findings, and
the digest of `pulumi preview --json`, which alone has lines of the program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote

from local.plugins.urn import PROVIDER_PREFIX, name_of, type_of
from local.plugins.wire import UNKNOWN_TEXT

Json = Any

SECRET: Final = "[secret]"
UNKNOWN: Final = "[unknown]"
_OPS: Final = {
    "same": "same",
    "create": "create",
    "import": "create",
    "update": "update",
    "delete": "delete",
    "replace": "replace",
    "import-replacement": "replace",
}
"""The operations on resources as such; the CLI also reports the parts of a replacement."""
_DIGEST: Final = ("config", "steps", "diagnostics", "duration", "changeSummary")
"""The fields of the CLI's digest, which leaves out what is empty, such as the steps of a program that failed."""
_CONTROLLER: Final = "pulumi-python:dynamic/cloudcontroller:CloudController"
_FOR_DISPLAY: Final = ("plan", "plan_number")
"""Its inputs that are no properties."""
_COLOUR: Final = re.compile(r"<\{%.*?%\}>")
_FRAME: Final = re.compile(r'^\s+File "([^"]+\.py)", line (\d+)', re.MULTILINE)
"""Where the program failed, in a traceback."""
_FAILED: Final = frozenset({"preview failed", "update failed"})
"""Said of every run that fails, whatever the reason is."""
_NOT_RUN: Final = re.compile(r"can't run policy")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the program, from the project's folder."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource and what happens to it (`op`: same, create, update, delete, replace)."""

    op: str
    urn: str
    before: Mapping[str, Json]
    """Its inputs, as JSON in which secrets are masked."""
    after: Mapping[str, Json]
    reasons: tuple[str, ...] = ()
    """The properties because of which it is replaced."""
    differing: tuple[str, ...] = ()
    """The properties that differ, by the engine: among them secrets, which look the same here."""
    place: Place | None = None
    retained: bool = False
    """Its deletion leaves it as it is (`retain_on_delete`)."""
    parent: str = ""
    """The URN, as `provider`'s."""
    provider: str = ""
    """Of Kubernetes' objects: their cluster."""

    @property
    def type(self) -> str:
        return type_of(self.urn)

    @property
    def name(self) -> str:
        return name_of(self.urn)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a policy says about a resource. `level`: advisory, mandatory, remediate, not-evaluated."""

    policy: str
    level: str
    message: str
    urn: str
    severity: str = ""
    description: str = ""
    place: Place | None = None
    unevaluated_mandatory: bool = False
    """A mandatory rule could not be evaluated. The CLI's events do not have a rule's level (`plans`)."""

    @property
    def fails(self) -> bool:
        """Whether the gate stays closed: a mandatory rule is violated, or nobody knows whether it is."""
        return self.level == "mandatory" or self.unevaluated_mandatory


@dataclass(frozen=True, slots=True)
class Problem:
    """An error or a warning of the plan."""

    severity: str
    message: str
    urn: str = ""
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A plan of one stack."""

    stack: str
    resources: tuple[Resource, ...]
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    unlisted: int = 0
    """How many unchanged resources a digest only counts."""

    @property
    def has_error(self) -> bool:
        """Whether the stack could not be planned."""
        return any(problem.severity == "error" for problem in self.problems)


class NotEvents(ValueError):
    """The text is none of the forms; the message says what is wrong."""


def of_preview(digest: str, events: str) -> Outcome:
    """The outcome of a preview that wrote both forms. Raises NotEvents."""
    try:
        steps = json.loads(digest).get("steps") or () if digest.strip() else ()
        return _of_events([json.loads(line) for line in events.splitlines() if line.strip()], _places(steps))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NotEvents(f"a preview is not as Pulumi writes it: {type(error).__name__}: {error}") from None


def of_text(text: str) -> Outcome:
    """The outcome of what the CLI wrote as JSON. Raises NotEvents."""
    try:
        first = json.loads(text)
    except ValueError:
        first = None
    try:
        if isinstance(first, dict) and not first.keys().isdisjoint(_DIGEST):
            outcome = _of_digest(first)
        else:
            outcome = _of_events([json.loads(line) for line in text.splitlines() if line.strip()], {})
        if not (outcome.resources or outcome.findings or outcome.problems or outcome.unlisted):
            # What is left of a run that failed: a plan of nothing would read as a stack that does not change.
            raise ValueError("it is empty")
        return outcome
    except ValueError as error:
        raise NotEvents(f"neither the digest of `preview --json` nor one engine event a line: {error}") from None
    except (AttributeError, KeyError, TypeError) as error:
        raise NotEvents(f"an event is not as the CLI writes it: {type(error).__name__}: {error}") from None


def _of_events(bodies: Iterable[Json], places: Mapping[str, Place]) -> Outcome:
    resources: dict[str, Resource] = {}
    findings: list[Finding] = []
    problems: list[Problem] = []
    for body in bodies:
        if (event := body.get("resourcePreEvent") or body.get("resOutputsEvent")) is not None:
            step = event["metadata"]
            old, new = step.get("old") or {}, step.get("new") or {}
            detailed = step.get("detailedDiff") or {}
            _add(resources, step["op"], step["urn"], old, new, step.get("keys"), [*detailed, *step.get("diffs", ())])
        elif (event := body.get("policyEvent")) is not None:
            urn = event.get("resourceUrn", "")
            whole, name = _plain(event["message"]), event["policyName"]
            level = "not-evaluated" if _NOT_RUN.match(whole) else event["enforcementLevel"]
            # A rule's message follows its description.
            description, ended, message = whole.partition("\n")
            said = (message, description) if ended and level != "not-evaluated" else (whole, "")
            found = Finding(name, level, said[0], urn, event.get("severity", ""), said[1], places.get(urn))
            findings.append(found)
        elif (event := body.get("diagnosticEvent")) is not None and not event.get("ephemeral"):
            problems += _problem(event, places)
    placed = tuple(_with_place(resource, places) for resource in resources.values())
    return _outcome(placed, findings, problems)


def _of_digest(digest: Json) -> Outcome:
    resources: dict[str, Resource] = {}
    steps = digest.get("steps") or ()
    places = _places(steps)
    for step in steps:
        old, new = step.get("oldState") or {}, step.get("newState") or {}
        detailed = step.get("detailedDiff") or {}
        differing = [*detailed, *(step.get("diffReasons") or ())]
        reasons = step.get("replaceReasons") or _replacing(detailed)
        _add(resources, step["op"], step["urn"], old, new, reasons, differing)
    problems = [found for event in digest.get("diagnostics") or () for found in _problem(event, places)]
    placed = tuple(_with_place(resource, places) for resource in resources.values())
    listed = sum(resource.op == "same" for resource in placed)
    unlisted = max(0, (digest.get("changeSummary") or {}).get("same", 0) - listed)
    return replace(_outcome(placed, [], problems), unlisted=unlisted)


def _places(steps: Iterable[Json]) -> dict[str, Place]:
    """The line of the program for each URN of a digest."""
    found = {}
    for step in steps:
        state = step.get("newState") or step.get("oldState") or {}
        frames = [state.get("sourcePosition", "")]
        frames += [frame.get("sourcePosition", "") for frame in state.get("stackTrace") or ()]
        if (place := _place(frames)) is not None:
            found[step["urn"]] = place
    return found


def _outcome(resources: tuple[Resource, ...], findings: list[Finding], problems: list[Problem]) -> Outcome:
    urns = [urn for urn in (*(r.urn for r in resources), *(f.urn for f in findings)) if urn]
    stack = urns[0].removeprefix("urn:pulumi:").partition("::")[0] if urns else ""
    reasons = [problem for problem in problems if problem.severity == "error" and problem.message not in _FAILED]
    if reasons or any(finding.fails for finding in findings):
        problems = [problem for problem in problems if problem.message not in _FAILED]
    # Several resources of one kind may raise the same warning.
    return Outcome(stack, resources, tuple(dict.fromkeys(findings)), tuple(dict.fromkeys(problems)))


def _add(
    found: dict[str, Resource],
    op: str,
    urn: str,
    old: Json,
    new: Json,
    reasons: Iterable[str] | None,
    differing: Iterable[str],
) -> None:
    # The engine's own providers are called `default` and `default_VERSION`.
    own = type_of(urn).startswith(PROVIDER_PREFIX) and name_of(urn).partition("_")[0] == "default"
    if op not in _OPS or own:
        return
    kind = type_of(urn)
    before, after = (_public(kind, state.get("inputs") or {}) for state in (old, new))
    keys = tuple(dict.fromkeys(reasons or ()))
    state = new or old
    found[urn] = Resource(
        _OPS[op],
        urn,
        before,
        after,
        keys,
        tuple(dict.fromkeys(differing)),
        retained=bool(old.get("retainOnDelete")),
        parent=str(state.get("parent") or ""),
        # Followed by the provider's ID, which a preview may not know.
        provider=str(state.get("provider") or "").rpartition("::")[0],
    )


def _replacing(detailed: Mapping[str, Json]) -> list[str]:
    return [path for path, change in detailed.items() if str(change.get("kind", "")).endswith("-replace")]


def _problem(event: Json, places: Mapping[str, Place]) -> list[Problem]:
    severity, message = event.get("severity", ""), _plain(event.get("message", ""))
    if severity.startswith("info") or severity == "debug" or not message or message.endswith("KeyboardInterrupt"):
        return []
    severity = "error" if severity == "error" else "warning"
    urn = event.get("urn", "")
    place = places.get(urn) or _place(f"{path}#{line}" for path, line in reversed(_FRAME.findall(message)))
    return [Problem(severity, message.removeprefix(f"{severity}: "), urn, place)]


def _plain(message: str) -> str:
    return _COLOUR.sub("", message).strip()


def _with_place(resource: Resource, places: Mapping[str, Place]) -> Resource:
    return replace(resource, place=places.get(resource.urn))


def _place(positions: Iterable[str]) -> Place | None:
    """The line of the program that leads to a resource: `__main__.py`'s if there is one, else the innermost."""
    found = []
    for position in positions:
        path, _, line = unquote(position).removeprefix("project:///").rpartition("#")
        # What is above the project is a library's.
        if path and line.isdecimal() and not path.startswith((".", "/")) and "site-packages" not in path:
            found.append(Place(path, int(line)))
    return next((place for place in found if place.path == "__main__.py"), found[0] if found else None)


def _public(kind: str, inputs: Mapping[str, Json]) -> dict[str, Json]:
    """The inputs for people: without internal ones, and without what a Kubernetes Secret holds."""
    shown = (key for key in inputs if not key.startswith("__") and (key not in _FOR_DISPLAY or kind != _CONTROLLER))
    public = {key: _shown(inputs[key]) for key in shown}
    if kind.startswith("kubernetes:"):
        # By the type, which a CustomResource makes of `v1`, or as an item of a list.
        is_secret = kind.rpartition(":")[2].startswith("Secret")
        listed = public.get("items")
        for each in (public, *(listed if isinstance(listed, list) else ())):
            if not isinstance(each, dict) or not (is_secret or each.get("kind") == "Secret"):
                continue
            for key in ("data", "stringData"):
                if isinstance(held := each.get(key), dict):
                    each[key] = dict.fromkeys(held, SECRET)
    return public


def _shown(value: Json) -> Json:
    if isinstance(value, dict):
        return {k: _shown(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_shown(v) for v in value]
    return UNKNOWN if value == UNKNOWN_TEXT else value

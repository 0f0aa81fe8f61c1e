"""Shows a run to people: a line for each step, what differs, the controller's plan, policies, outputs, a summary.

Plain text; on a terminal the operations have colours. Secrets are shown as [secret], what is not known as [unknown].
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from typing import Final, TextIO

from local.engine import paths
from local.engine.events import (
    Diagnostic,
    Event,
    PolicyEvent,
    Prelude,
    StepDone,
    StepFailed,
    StepInfo,
    StepStarted,
    Summary,
)
from local.engine.planner import Op
from local.engine.provider import DiffKind
from local.engine.urn import is_provider, name_of, type_of
from local.engine.values import UNKNOWN, Archive, Asset, PropertyMap, ResourceReference, Secret, Value

_SYMBOLS: Final = {
    Op.SAME: " ",
    Op.CREATE: "+",
    Op.UPDATE: "~",
    Op.DELETE: "-",
    Op.REPLACE: "+-",
    Op.CREATE_REPLACEMENT: "++",
    Op.DELETE_REPLACED: "--",
    Op.REFRESH: "~",
}
_COLOURS: Final = {"+": "32", "~": "33", "-": "31", "+-": "35", "++": "32", "--": "31"}
_PAST: Final = {
    Op.CREATE: "created",
    Op.UPDATE: "updated",
    Op.DELETE: "deleted",
    Op.REPLACE: "replaced",
    Op.DELETE_REPLACED: "deleted the replaced one",
    Op.REFRESH: "refreshed",
}
_DOING: Final = {
    Op.CREATE: "creating",
    Op.UPDATE: "updating",
    Op.DELETE: "deleting",
    Op.REPLACE: "replacing",
    Op.DELETE_REPLACED: "deleting the replaced one",
    Op.REFRESH: "refreshing",
}
_WOULD: Final = {
    Op.DELETE_REPLACED: "delete the replaced one",
}
_PLAN_SYMBOLS: Final = {"create": "+", "update": "~", "replace": "+-", "delete": "-", "ignore": " "}
_TITLES: Final = {
    "preview": "Previewing update",
    "up": "Updating",
    "refresh": "Refreshing",
    "destroy": "Destroying",
}
PLAN: Final = "plan"
DRIFT: Final = "drift"
"""An output of the same form: what a refresh found that a plan would have to mend."""


class Display:
    """An event sink that writes text."""

    def __init__(self, out: TextIO, *, diff: bool = False, colour: bool = False) -> None:
        """`diff` shows the properties of what is created, too."""
        self._out = out
        self._diff = diff
        self._colour = colour
        self._lock = threading.Lock()
        self._findings: list[PolicyEvent] = []
        self._problems: dict[str, list[Diagnostic]] = {}
        self._told: set[str] = set()
        self._buried = False
        """Whether the problems have to be told (again) at the end: cut short, or something was told after them."""
        self._previewing = False
        self._refreshing = False

    def __call__(self, event: Event) -> None:
        with self._lock:
            lines = self._lines(event)
            if lines:
                if self._problems and not isinstance(event, Diagnostic):
                    self._buried = True
                self._out.write("\n".join(lines) + "\n")
                self._out.flush()

    def _lines(self, event: Event) -> list[str]:
        if isinstance(event, Prelude):
            self._refreshing = event.operation == "refresh"
            self._previewing = event.operation == "preview"
            return [f"{_TITLES[event.operation]} ({event.stack}):"]
        if isinstance(event, StepStarted):
            return [self._step(event.step, _DOING[event.step.op])] if _takes_time(event) else []
        if isinstance(event, StepDone):
            return self._done(event)
        if isinstance(event, StepFailed):
            return [] if event.step.hidden else [self._step(event.step, "failed")]
        if isinstance(event, Diagnostic):
            return self._diagnostic(event)
        if isinstance(event, PolicyEvent):
            self._findings.append(event)
            return []
        return self._summary(event)

    def _done(self, event: StepDone) -> list[str]:
        step = event.step
        # What a refresh reads back is the plan of an earlier run.
        if step.new is None:
            plan = []
        elif self._refreshing:
            plan = plan_lines(step.new.outputs.get(DRIFT), DRIFT)
        else:
            plan = plan_lines(step.new.inputs.get(PLAN))
        if step.hidden or (step.op is Op.SAME and not plan):
            return []
        if step.op is Op.SAME:
            word = ""
        elif event.planning:
            word = _WOULD.get(step.op, str(step.op))
        elif self._refreshing:
            word = "gone: forgotten" if step.op is Op.DELETE else "changed"
        else:
            word = f"{_PAST[step.op]} ({event.seconds:.2f}s)"
        if step.note and not self._refreshing:
            word += f" [{step.note}]"
        lines = [self._step(step, word)]
        if event.planning or self._refreshing or self._diff:
            lines += self._details(step)
        lines += [f"        {line}" for line in plan]
        return lines

    def _details(self, step: StepInfo) -> list[str]:
        lines: list[str] = []
        if step.keys:
            lines.append(f"        because of {', '.join(step.keys)}")
        if step.old is not None and step.new is not None and step.detailed:
            before, after = (
                (step.old.outputs, step.new.outputs) if self._refreshing else (step.old.inputs, step.new.inputs)
            )
            lines += [f"      {self._paint(line)}" for line in diff_lines(before, after, step.detailed)]
        elif self._diff and step.new is not None and step.op is not Op.SAME:
            lines += [f"        {line}" for line in property_lines(_public(step.new.inputs))]
        return lines

    def _step(self, step: StepInfo, word: str) -> str:
        symbol = _SYMBOLS[step.op]
        return f"{self._symbol(f' {symbol:<2}', symbol)} {step.type} {name_of(step.urn)} {word}".rstrip()

    def _diagnostic(self, event: Diagnostic) -> list[str]:
        where = f"{type_of(event.urn)} {name_of(event.urn)}: " if event.urn else ""
        if event.ephemeral or event.severity == "info":
            return [f"      {where}{line}" for line in event.message.splitlines()]
        self._problems.setdefault(event.urn, []).append(event)
        first, *rest = event.message.splitlines() or [""]
        self._buried = self._buried or bool(rest)
        # A preview takes seconds: there its problems stand together at the end, and once. Nor is it worth a line each
        # where ten resources have one problem, such as a cloud that does not answer.
        if self._previewing or event.message in self._told:
            self._buried = True
            return []
        self._told.add(event.message)
        return [f"    {event.severity}: {where}{first}"]

    def _summary(self, event: Summary) -> list[str]:
        lines = self._policies(event.policy_packs, event.failed)
        if self._buried or lines:
            lines += self._diagnostics()
        if not event.failed or event.new_outputs != event.old_outputs:
            lines += self._outputs(event)
        lines += self._counts(event)
        lines += ["", f"Duration: {event.seconds:.1f}s"]
        return lines

    def _policies(self, packs: Mapping[str, str], failed: bool) -> list[str]:
        if not packs:
            return []
        lines = ["", "Policies:"]
        for name, version in packs.items():
            found = [e.finding for e in self._findings if e.finding.pack == name]
            lines.append(f"    {name}{f'@v{version}' if version else ''}: {_verdict([f.level for f in found], failed)}")
            for finding in found:
                about = f"({type_of(finding.urn)}: {name_of(finding.urn)})"
                lines.append(f"        [{finding.level}] {finding.policy} {about}")
                text = [finding.description, *finding.message.splitlines()]
                lines += [f"            {line}" for line in dict.fromkeys(text) if line]
        return lines

    def _diagnostics(self) -> list[str]:
        if not self._problems:
            return []
        lines = ["", "Diagnostics:"]
        alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for urn, events in self._problems.items():
            alike.setdefault(tuple((e.severity, e.message) for e in events), []).append(urn)
        for messages, urns in alike.items():
            lines += [f"  {type_of(urn)} ({name_of(urn)}):" if urn else "  the run:" for urn in urns]
            for severity, message in messages:
                first, *rest = message.splitlines() or [""]
                lines += [f"    {severity}: {first}", *(f"      {line}" for line in rest)]
        return lines

    def _outputs(self, event: Summary) -> list[str]:
        old, new = event.old_outputs, event.new_outputs
        if not old and not new:
            return []
        width = max(len(k) for k in [*old, *new])
        lines = ["", "Outputs:"]
        for key in sorted({*old, *new}):
            label = f"{key:<{width}}: "
            if key not in new:
                lines.append(self._paint(f"  - {label}{_inline(old[key])}"))
            elif key not in old:
                lines.append(self._paint(f"  + {label}{_inline(new[key])}"))
            elif old[key] != new[key]:
                lines.append(self._paint(f"  ~ {label}{_inline(old[key])} => {_inline(new[key])}"))
            else:
                lines.append(f"    {label}{_inline(new[key])}")
        return lines

    def _counts(self, event: Summary) -> list[str]:
        words = {
            Op.CREATE: ("+ ", "create", "created"),
            Op.UPDATE: ("~ ", "update", "updated"),
            Op.DELETE: ("- ", "delete", "deleted"),
            Op.REPLACE: ("+-", "replace", "replaced"),
        }
        lines = ["", "Resources:"]
        changes = 0
        for op, (symbol, would, did) in words.items():
            count = event.changes.get(op, 0)
            changes += count
            if count:
                text = f"{symbol}{count} {f'to {would}' if event.planning else did}"
                lines.append(f"    {self._symbol(text, symbol.strip())}")
        same = event.changes.get(Op.SAME, 0)
        if changes and same:
            lines.append(f"    {changes} change{'s' if changes > 1 else ''}. {same} unchanged")
        elif same:
            lines.append(f"    {same} unchanged")
        return lines if len(lines) > 2 else []

    def _symbol(self, text: str, symbol: str) -> str:
        code = _COLOURS.get(symbol)
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code else text

    def _paint(self, line: str) -> str:
        stripped = line.lstrip()
        return self._symbol(line, stripped[:1]) if stripped[:2] in ("+ ", "- ", "~ ") else line


def _takes_time(event: StepStarted) -> bool:
    """Whether there is something to wait for: components and provider instances have nothing behind them."""
    step = event.step
    if event.planning or step.hidden or step.op in (Op.SAME, Op.REFRESH):
        return False
    spared = step.op in (Op.DELETE, Op.DELETE_REPLACED) and bool(step.note)
    return step.resource.custom and not is_provider(step.type) and not spared


def _verdict(levels: Iterable[str], failed: bool) -> str:
    counts: dict[str, int] = {}
    for level in levels:
        counts[level] = counts.get(level, 0) + 1
    said = [f"{count} {level}" for level, count in counts.items()]
    if failed and "mandatory" not in counts:
        # What failed came before some of the rules, or was one.
        said.append("not evaluated to the end, as the run failed")
    return ", ".join(said) or "passed"


def plan_lines(plan: Value, title: str = PLAN) -> list[str]:
    """A controller's plan, a line an action: its symbol, target, summary, changes and reason."""
    if isinstance(plan, Secret) or not plan:
        return []
    if plan is UNKNOWN:
        return [f"{title}: [unknown]"]
    if isinstance(plan, dict):
        plan = [v if isinstance(v, dict) else {"target": k, "summary": str(v), "kind": str(v)} for k, v in plan.items()]
    if not isinstance(plan, list):
        return [f"{title}: {_inline(plan)}"]
    lines = [f"{title}:"]
    for action in plan:
        if not isinstance(action, dict):
            lines.append(f"    {_inline(action)}")
            continue
        symbol = _PLAN_SYMBOLS.get(str(action.get("kind")), " ")
        line = f"  {symbol:<2}{action.get('target', '')}: {action.get('summary', '')}"
        if action.get("reason"):
            line += f" ({action['reason']})"
        if action.get("assumed"):
            line += " [assumed]"
        lines.append(line)
        lines += [
            f"        {c.get('field')}: {_inline(c.get('before'))} => {_inline(c.get('after'))}"
            for c in action.get("changes") or ()
            if isinstance(c, dict)
        ]
    return lines


def diff_lines(old: PropertyMap, new: PropertyMap, detailed: Mapping[str, object]) -> list[str]:
    """The differing properties, a line each: `+ path: value`, `- path: value`, `~ path: old => new`."""
    lines: list[str] = []
    for path in sorted(detailed):
        steps = paths.parse(path)
        if steps and steps[0] in (PLAN, DRIFT):
            continue
        kind = str(getattr(detailed[path], "kind", DiffKind.UPDATE))
        before, after = _at(old, steps), _at(new, steps)
        if kind.startswith("add") or before is _ABSENT:
            lines.append(f"+ {path}: {_inline(None if after is _ABSENT else after)}")
        elif kind.startswith("delete") or after is _ABSENT:
            lines.append(f"- {path}: {_inline(before)}")
        else:
            lines.append(f"~ {path}: {_inline(before)} => {_inline(after)}")
    return lines


def property_lines(values: Value, indent: str = "") -> list[str]:
    """Properties as indented lines, in the CLI's manner."""
    lines: list[str] = []
    for key in sorted(values):
        value = values[key]
        if isinstance(value, dict) and value:
            lines += [f"{indent}{key}: {{", *property_lines(value, indent + "    "), f"{indent}}}"]
        elif isinstance(value, list) and value:
            lines.append(f"{indent}{key}: [")
            for index, item in enumerate(value):
                if isinstance(item, dict) and item:
                    inner = indent + "    "
                    lines += [f"{inner}[{index}]: {{", *property_lines(item, inner + "    "), f"{inner}}}"]
                else:
                    lines.append(f"{indent}    [{index}]: {_inline(item)}")
            lines.append(f"{indent}]")
        else:
            lines.append(f"{indent}{key}: {_inline(value)}")
    return lines


_ABSENT: Final = object()


def _at(value: Value, steps: paths.Path) -> Value:
    for step in steps:
        if isinstance(value, Secret):
            return value
        if isinstance(value, dict) and step in value:  # noqa: SIM114 - two types, for the type checker
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return _ABSENT
    return value


def _inline(value: Value) -> str:
    if isinstance(value, Secret):
        return "[secret]"
    if value is UNKNOWN:
        return "[unknown]"
    if isinstance(value, ResourceReference):
        return f"<{name_of(value.urn)}>"
    if isinstance(value, Asset | Archive):
        return f"<{type(value).__name__.lower()}>"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(v) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _public(values: PropertyMap) -> PropertyMap:
    return {k: v for k, v in values.items() if not k.startswith("__") and k != PLAN}

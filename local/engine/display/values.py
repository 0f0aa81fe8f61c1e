"""Values, differences and plans as lines. Secrets are shown as [secret], unknown values as [unknown]."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from local.engine.display.text import Line, Part, line
from local.engine.display.words import word_of
from local.engine.events import UNTARGETED, StepInfo
from local.engine.steps.planner import Op
from local.plugins import paths
from local.plugins.provider import DiffKind
from local.plugins.urn import name_of
from local.plugins.values import UNKNOWN, Archive, Asset, PropertyMap, ResourceReference, Secret, Value

PLAN: Final = "plan"
DRIFT: Final = "drift"
"""An output of the same form: drift that a refresh found and a plan would correct."""


def details(step: StepInfo, *, planning: bool, refreshing: bool, diff: bool) -> list[Line]:
    """The lines under a step: the replacement's reason, the differences, with `diff` created properties, the plan."""
    lines: list[Line] = []
    if planning or refreshing or diff:
        if step.keys:
            lines.append(line(f"  because of {', '.join(step.keys)}"))
        if step.old is not None and step.new is not None and step.detailed:
            before, after = (step.old.outputs, step.new.outputs) if refreshing else (step.old.inputs, step.new.inputs)
            lines += [by_sign(text) for text in diff_lines(before, after, step.detailed, step.new.hide_diffs)]
        elif diff and step.new is not None and step.op is not Op.SAME:
            lines += [line(f"  {text}") for text in property_lines(_public(step.new.inputs))]
    return lines + [line(f"  {text}") for text in plan_of(step, refreshing=refreshing)]


def plan_of(step: StepInfo, *, refreshing: bool) -> list[str]:
    """The plan's lines of an unchanged resource; in a refresh those of its drift.

    A changed resource logs its plan in a hook, which shows it among the diagnostics as with Pulumi's CLI.
    """
    if step.new is None or step.note == UNTARGETED:
        return []
    # What a refresh reads back is the plan of an earlier run, as is what an untargeted resource keeps.
    if refreshing:
        return plan_lines(step.new.outputs.get(DRIFT), DRIFT)
    return plan_lines(step.new.inputs.get(PLAN)) if step.op is Op.SAME else []


def by_sign(text: str) -> Line:
    """A line in the tone of its leading sign."""
    stripped = text.lstrip()
    return line(text, word_of(_SIGNS[stripped[:2]]).tone) if stripped[:2] in _SIGNS else line(text)


_SIGNS: Final = {"+ ": "create", "- ": "delete", "~ ": "update"}


def plan_lines(plan: Value, title: str = PLAN) -> list[str]:
    """A controller's plan, one line per action: its symbol, target, summary, changes and reason."""
    if isinstance(plan, Secret) or not plan:
        return []
    if plan is UNKNOWN:
        return [f"{title}: [unknown]"]
    if isinstance(plan, dict):
        plan = [v if isinstance(v, dict) else {"target": k, "summary": str(v), "kind": str(v)} for k, v in plan.items()]
    if not isinstance(plan, list):
        return [f"{title}: {inline(plan)}"]
    lines = [f"{title}:"]
    for action in plan:
        if not isinstance(action, dict):
            lines.append(f"    {inline(action)}")
            continue
        symbol = _PLAN_SYMBOLS.get(str(action.get("kind")), " ")
        text = f"  {symbol:<2}{action.get('target', '')}: {action.get('summary', '')}"
        if action.get("reason"):
            text += f" ({action['reason']})"
        if action.get("assumed"):
            text += " [assumed]"
        lines.append(text)
        lines += [
            f"        {c.get('field')}: {inline(c.get('before'))} => {inline(c.get('after'))}"
            for c in action.get("changes") or ()
            if isinstance(c, dict)
        ]
    return lines


_PLAN_SYMBOLS: Final = {"create": "+", "update": "~", "replace": "+-", "delete": "-", "ignore": " "}


def diff_keys(step: StepInfo) -> str:
    """The properties that differ, by their first name, as one word: `[diff: +tags,~size]`."""
    signs: dict[str, str] = {}
    for path, difference in step.detailed.items():
        steps = paths.named(path)
        if not steps:
            continue
        kind = str(difference.kind)
        sign = "~" if len(steps) > 1 else "+" if kind.startswith("add") else "-" if kind.startswith("delete") else "~"
        key = str(steps[0])
        signs[key] = sign if signs.get(key, sign) == sign else "~"
    return f"[diff: {','.join(f'{sign}{key}' for key, sign in sorted(signs.items()))}]" if signs else ""


def diff_lines(
    old: PropertyMap, new: PropertyMap, detailed: Mapping[str, object], hidden: Sequence[str] = ()
) -> list[str]:
    """The differing properties, one line each: `+ path: value`, `- path: value`, `~ path: old => new`.

    The values of `hidden` ones (`hide_diffs`) are not shown.
    """
    concealed = [paths.named(path) for path in hidden]
    lines: list[str] = []
    for path in sorted(detailed):
        steps = paths.named(path)
        if steps and steps[0] in (PLAN, DRIFT):
            continue
        kind = str(getattr(detailed[path], "kind", DiffKind.UPDATE))
        before, after = _at(old, steps), _at(new, steps)
        if any(paths.covers(pattern, steps) for pattern in concealed):
            lines.append(f"~ {path}: [diff hidden]")
        elif kind.startswith("add") or before is _ABSENT:
            lines.append(f"+ {path}: {inline(None if after is _ABSENT else after)}")
        elif kind.startswith("delete") or after is _ABSENT:
            lines.append(f"- {path}: {inline(before)}")
        else:
            lines.append(f"~ {path}: {inline(before)} => {inline(after)}")
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
                    lines.append(f"{indent}    [{index}]: {inline(item)}")
            lines.append(f"{indent}]")
        else:
            lines.append(f"{indent}{key}: {inline(value)}")
    return lines


def output_lines(old: PropertyMap, new: PropertyMap) -> list[Line]:
    """A stack's outputs, each with its change."""
    width = max((len(k) for k in [*old, *new]), default=0)
    lines: list[Line] = []
    for key in sorted({*old, *new}):
        label = f"{key:<{width}}: "
        if key not in new:
            lines.append(by_sign(f"- {label}{inline(old[key])}"))
        elif key not in old:
            lines.append(by_sign(f"+ {label}{inline(new[key])}"))
        elif old[key] != new[key]:
            lines.append(by_sign(f"~ {label}{inline(old[key])} => {inline(new[key])}"))
        else:
            lines.append((Part("  "), Part(f"{label}{inline(new[key])}")))
    return lines


def inline(value: Value) -> str:
    """A value on one line."""
    if isinstance(value, Secret):
        return "[secret]"
    if value is UNKNOWN:
        return "[unknown]"
    if isinstance(value, ResourceReference):
        return f"<{name_of(value.urn)}>"
    if isinstance(value, Asset | Archive):
        return f"<{type(value).__name__.lower()}>"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(inline(v) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)


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


def _public(values: PropertyMap) -> PropertyMap:
    return {k: v for k, v in values.items() if not k.startswith("__") and k != PLAN}

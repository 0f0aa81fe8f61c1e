"""The annotation `pulumi.com/waitFor`: an object's own condition for being ready. Pure.

One expression, or a JSON list of them, all of which must hold: `condition=Ready`, `condition=Ready=False`,
`jsonpath={.status.phase}`, `jsonpath={.status.phase}=Running`. It replaces the rule of its kind.
"""

from __future__ import annotations

import json
import re
from typing import Any

from local.plugins.kubernetes.conditions import READY, Judge, Object, Progress, condition_of

_PATH = re.compile(r"jsonpath=\{(?P<path>.*)\}(?:=(?P<value>.+))?", re.DOTALL)
_CONDITION = re.compile(r"condition=(?P<type>[^=]+)(?:=(?P<status>[^=]+))?")
# kubectl's way to write a dot in a key; the standard (RFC 9535) has brackets for that.
_ESCAPED_KEY = re.compile(r"\.((?:[^.\[\]\\]|\\\.)*\\\.(?:[^.\[\]\\]|\\\.)*)")


def parse_wait_for(text: str) -> Judge:
    """The judge of an annotation's value. Raises ValueError, which says what is wrong and what is allowed."""
    expressions = _expressions(text)
    judges = [_judge(expression) for expression in expressions]

    def judge(obj: Object) -> Progress:
        return next((p for each in judges if not (p := each(obj)).ready), READY)

    return judge


def _expressions(text: str) -> list[str]:
    if not text.lstrip().startswith("["):
        return [text]
    try:
        listed = json.loads(text)
    except ValueError as error:
        raise ValueError(f"is not a JSON list: {error}") from None
    if not listed or not all(isinstance(item, str) for item in listed):
        raise ValueError("must be a list of at least one expression, each a string")
    return list(listed)


def _judge(expression: str) -> Judge:
    if match := _CONDITION.fullmatch(expression):
        return _condition_judge(match["type"], match["status"] or "True")
    if match := _PATH.fullmatch(expression):
        return _path_judge(match["path"], match["value"])
    raise ValueError(
        f"{expression!r} is not a valid expression; allowed: condition=TYPE, condition=TYPE=STATUS, "
        f"jsonpath={{PATH}}, jsonpath={{PATH}}=VALUE, or a JSON list of these"
    )


def _condition_judge(type: str, status: str) -> Judge:
    def judge(obj: Object) -> Progress:
        found = condition_of(obj, type)
        if str(found.get("status", "")).lower() == status.lower():
            return READY
        seen = f"it is {found['status']}" if found else "it is absent"
        detail = f" ({found['message']})" if found.get("message") else ""
        return Progress(False, f"waiting for condition {type}={status}: {seen}{detail}")

    return judge


def _path_judge(path: str, value: str | None) -> Judge:
    # Imported on use: it is slow to load and rarely needed.
    import jsonpath

    standard = _ESCAPED_KEY.sub(lambda match: f"[{json.dumps(match[1].replace(chr(92), ''))}]", path)
    try:
        compiled = jsonpath.compile("$" + (standard if standard.startswith((".", "[")) else f".{standard}"))
    except jsonpath.JSONPathError as error:
        raise ValueError(f"{{{path}}} is not a valid JSONPath: {error.args[0]}") from None

    def judge(obj: Object) -> Progress:
        found = compiled.findall(obj)
        if found if value is None else any(_text(each) == value for each in found):
            return READY
        wanted = "" if value is None else f"={value}"
        return Progress(False, f"waiting for {{{path}}}{wanted}: {_seen(found)}")

    return judge


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _seen(found: list[Any]) -> str:
    # The value may be a Secret's: it is not shown.
    return "it has another value" if found else "it is absent"

"""Which objects a rule leaves alone, for which reason, and until when: the setting `exempt`, which every rule has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from policy.objects import dig, object_name
from policy.subjects import Subject

SETTING: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "object": {"type": "string", "minLength": 1},
            "reason": {"type": "string", "minLength": 1},
            "until": {"type": "string", "format": "date"},
        },
        "required": ["object", "reason", "until"],
        "additionalProperties": False,
    },
    "default": [],
    "description": (
        "Objects that the rule leaves alone: `object` (NAMESPACE/NAME, NAME, or the resource's name), `reason`, and "
        "`until`, the last day (YYYY-MM-DD). An exemption that has expired is a finding."
    ),
}


def is_judged(subject: Subject) -> bool:
    """Whether no exemption of today is for this object. Raises UnknownValueError if that depends on an unknown name."""
    return not any(_last_day(each) >= _today() for each in _exemptions(subject))


def expired(subject: Subject) -> Iterator[str]:
    """What to report of the object's expired exemptions. Raises as `is_judged`."""
    for each in _exemptions(subject):
        if _last_day(each) < _today():
            yield (
                f"the exemption of {each['object']} ({each['reason']}) expired on {each['until']}: "
                "mend the object and remove it, or renew it"
            )


def _exemptions(subject: Subject) -> Iterator[Mapping[str, Any]]:
    for each in subject.config.get("exempt") or ():
        wanted = str(each["object"])
        if wanted == subject.name or wanted in _names(subject.props):
            yield each


def _names(props: Mapping[str, Any]) -> tuple[str, str]:
    """`NAMESPACE/NAME` and `NAME`; of a resource outside Kubernetes, its name if it has one."""
    full = object_name(props) or str(dig(props, "name") or "")
    return full, full.rpartition("/")[2]


def _last_day(exemption: Mapping[str, Any]) -> date:
    return date.fromisoformat(str(exemption["until"]))


def _today() -> date:
    return datetime.now(UTC).date()

"""What every product checks of its parameters: ranges, choices and tags. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.standin.actions import Arguments
from local.standin.refusals import Refusal

_TAG = re.compile(r"(?!aliyun|acs:)(?!.*https?://).{1,64}", re.IGNORECASE)
_VALUE = re.compile(r"(?!aliyun|acs:)(?!.*https?://).{0,128}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Range:
    """The integers from `low` to `high`, and some more."""

    low: int
    high: int
    also: tuple[int, ...] = ()

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and (self.low <= value <= self.high or value in self.also)

    def __str__(self) -> str:
        also = "".join(f" or {value}" for value in self.also)
        return f"{self.low} to {self.high}{also}"


@dataclass(frozen=True, slots=True)
class Text:
    """The texts that a pattern matches."""

    pattern: str
    told: str
    """In words."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and re.fullmatch(self.pattern, value) is not None

    def __str__(self) -> str:
        return self.told


Rule = Range | Text | tuple[str, ...]

ON_OFF = ("on", "off")
PORT = Range(1, 65535)


def require(values: Mapping[str, Any], rules: Mapping[str, Rule], code: str) -> None:
    """Raise Refusal for a value outside its rule; `{}` in the code stands for the parameter's name."""
    values = values.raw if isinstance(values, Arguments) else values
    for name, rule in rules.items():
        if name in values and values[name] not in rule:
            allowed = ", ".join(rule) if isinstance(rule, tuple) else str(rule)
            message = f"The specified parameter {name} is not valid: {values[name]!r} is not one of {allowed}."
            raise Refusal(400, code.format(name), message)


def tags_of(asked: Sequence[Mapping[str, str]], most: int) -> dict[str, str]:
    """The tags of a request. Raises Refusal."""
    if len(asked) > most:
        raise Refusal(400, "SizeLimitExceeded.Tag", f"The maximum size of Tag is exceeded: {len(asked)} of {most}.")
    tags: dict[str, str] = {}
    for tag in asked:
        if not tag.get("Key"):
            raise Refusal(400, "MissingParam.TagKey", "The param TagKey is missing.")
        if not _TAG.fullmatch(tag["Key"]):
            raise Refusal(400, "InvalidParam.TagKey", f"The tag key is not valid: {tag['Key']!r}.")
        if not _VALUE.fullmatch(tag.get("Value", "")):
            raise Refusal(400, "InvalidParam.TagValue", f"The tag value is not valid: {tag['Value']!r}.")
        if tag["Key"] in tags:
            raise Refusal(400, "Duplicate.TagKey", f"The tag key is given twice: {tag['Key']!r}.")
        tags[tag["Key"]] = tag.get("Value", "")
    return tags


def has_tags(tags: Mapping[str, str], wanted: Sequence[Mapping[str, str]]) -> bool:
    """Whether tags have each of these keys, with its value where the filter names one."""
    return all(tag["Key"] in tags and tags[tag["Key"]] == tag.get("Value", tags[tag["Key"]]) for tag in wanted)


def shown_tags(tags: Mapping[str, str], key: str = "TagKey", value: str = "TagValue") -> list[dict[str, str]]:
    """Tags as answers write them."""
    return [{key: name, value: text} for name, text in tags.items()]

"""The level and settings of each rule of a pack: from the rule's defaults, the pack and the stack's file.

The analyzer server adds no defaults: the engine completes the configuration from the rules' schemas and rejects invalid
values. A file (--policy-pack-config) has a key for each rule, or "all", with a level or an object of `enforcementLevel`
and the rule's settings; the file overrides the pack, a rule's own key overrides "all".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

LEVELS = ("advisory", "mandatory", "disabled", "remediate")
"""By the protocol's number."""
ALL = "all"


class PolicyConfigError(Exception):
    """A configuration that is invalid for the pack; the message names the rule, the key and what is allowed."""


@dataclass(frozen=True, slots=True)
class RuleConfig:
    """A rule's level, if one is set, and its settings."""

    level: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as the pack declares it. `schema` is by setting, as in JSON schema's `properties`."""

    name: str
    level: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    required: Sequence[str] = ()


def parse(document: Any) -> dict[str, RuleConfig]:
    """The content of a --policy-pack-config file. Raises PolicyConfigError."""
    if not isinstance(document, Mapping):
        raise PolicyConfigError("the policy configuration must be an object with a key for each rule")
    return {str(name): _parse_rule(str(name), value) for name, value in document.items()}


def reconcile(
    rules: Sequence[Rule], initial: Mapping[str, RuleConfig], given: Mapping[str, RuleConfig]
) -> dict[str, RuleConfig]:
    """Each rule's final level and settings. Raises PolicyConfigError for unknown rules and invalid settings."""
    names = [rule.name for rule in rules]
    for name in given:
        if name != ALL and name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f' (did you mean "{near[0]}"?)' if near else ""
            raise PolicyConfigError(f'the pack has no rule "{name}"{hint} (rules: {", ".join(sorted(names))})')
    return {rule.name: _reconcile_rule(rule, initial, given) for rule in rules}


def _parse_rule(name: str, value: Any) -> RuleConfig:
    if isinstance(value, str):
        return RuleConfig(_level(name, value))
    if not isinstance(value, Mapping):
        raise PolicyConfigError(f'"{name}" must be a level ({", ".join(LEVELS)}) or an object, not {value!r}')
    settings = {key: setting for key, setting in value.items() if key != "enforcementLevel"}
    if name == ALL and settings:
        raise PolicyConfigError(f'"{ALL}" takes only a level; set {", ".join(settings)} on single rules')
    level = value.get("enforcementLevel")
    return RuleConfig(None if level is None else _level(name, level), settings)


def _level(name: str, value: Any) -> str:
    if value not in LEVELS:
        raise PolicyConfigError(f'"{name}": {value!r} is not a level (allowed: {", ".join(LEVELS)})')
    return str(value)


def _reconcile_rule(rule: Rule, initial: Mapping[str, RuleConfig], given: Mapping[str, RuleConfig]) -> RuleConfig:
    level = rule.level
    properties = {key: schema["default"] for key, schema in rule.schema.items() if "default" in schema}
    for source in (initial, given):
        for key in (ALL, rule.name):
            config = source.get(key)
            if config is not None:
                level = config.level or level
                properties.update(config.properties)
    if level != "disabled":
        _validate(rule, properties)
    return RuleConfig(level, properties)


def _validate(rule: Rule, properties: Mapping[str, Any]) -> None:
    # Imported on use: only runs with packs need it.
    import jsonschema

    schema = {
        "type": "object",
        "properties": dict(rule.schema),
        "required": list(rule.required),
        "additionalProperties": False,
    }
    kind = jsonschema.Draft202012Validator
    for error in kind(schema, format_checker=kind.FORMAT_CHECKER).iter_errors(dict(properties)):
        where = "".join(f".{part}" for part in error.absolute_path)
        raise PolicyConfigError(f'"{rule.name}"{where}: {error.message}')

"""Reads a stack's config, and words the error for each mistake: the key, its value and what is allowed.

`load()` reads the running program's config; `parse()` is the pure part. The keys are those of `docs/stack-config.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import pulumi
from pydantic import BaseModel, Field, SecretStr, ValidationError, create_model
from pydantic_core import ErrorDetails

from cloud_controller.registry import Registry

from . import clouds, stack_file_lines
from .config_values import NAMESPACE, ConfigError, Controller, Executor, Role, line, nearest, one_of
from .existing_config import KUBECONFIG
from .stack_model import CloudSection, NodePoolConfig, StackConfig

__all__ = [
    "MODEL",
    "NAMESPACE",
    "SECRET_KEYS",
    "ConfigError",
    "Controller",
    "Executor",
    "NodePoolConfig",
    "Role",
    "StackConfig",
    "load",
    "parse",
]

_SECTIONS = {cloud.name: cloud.section() for cloud in clouds.descriptors()}


def model_with(sections: Mapping[str, type[CloudSection]]) -> type[StackConfig]:
    """The class of a stack's config: the keys that every cloud has, then those of each cloud.

    A section without required keys may be left out of a stack file.
    """
    cloud = Field(description=StackConfig.model_fields["cloud"].description)
    fields: dict[str, Any] = {"cloud": (Annotated[str, one_of(*sections)], cloud)}
    for name, section in sections.items():
        needed = any(field.is_required() for field in section.model_fields.values())
        field = Field(default=None if needed else section(), alias=name, description=f"Settings of the cloud {name}.")
        fields[name] = (section | None, field)
        for key, description in section.secret_keys.items():
            fields[key] = (SecretStr | None, Field(default=None, alias=key, description=description))
    return create_model("StackConfig", __base__=StackConfig, **fields)


MODEL = model_with(_SECTIONS)
"""`StackConfig` with the keys of the clouds that there are."""

SECRET_KEYS = [KUBECONFIG, *(key for section in _SECTIONS.values() for key in section.secret_keys)]
"""The keys that must be encrypted in a stack file."""


def load() -> StackConfig:
    """The config of the stack whose program is running. Raises `ConfigError`."""
    prefix = f"{NAMESPACE}:"
    settings: dict[str, Any] = {**pulumi.runtime.config.get_config_env(), **pulumi.runtime.config.CONFIG.get()}
    values = {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}
    secrets = {key for key in values if pulumi.runtime.config.is_config_secret(prefix + key)}
    try:
        return parse(values, secrets)
    except ConfigError as error:
        file = Path("stacks", f"Pulumi.{pulumi.get_stack()}.yaml")
        told = stack_file_lines.with_lines(str(error), values, file)
        raise ConfigError("\n".join([told, *_needs_site(str(error), values)])) from None


def _needs_site(error: str, values: Mapping[str, str]) -> list[str]:
    """What to do if the stack file lacks what a site of this machine adds to it."""
    cloud = values.get("cloud", "")
    section = _json(values.get(cloud, "null"))
    served = section is None or (isinstance(section, dict) and section.get("simulated") is True)
    missing = re.search(rf"^{NAMESPACE}:({re.escape(cloud)}|existing) is missing", error, re.MULTILINE)
    # By name: the program does not know `local`.
    if not (missing and served and cloud in Registry("local.clouds", object).names()):
        return []
    stack = pulumi.get_stack()
    return [f"stack {stack} needs its site, which adds {missing[1]}: run it with `make up STACK={stack}`"]


def parse(values: Mapping[str, str], secrets: Container[str] = ()) -> StackConfig:
    """Make the typed config of the values by key (without namespace) as Pulumi hands them over: objects as JSON text.

    `secrets` are the keys that are encrypted in the stack file. Raises `ConfigError` with one line for each thing that
    is wrong, including a secret in plain text. It never shows a secret, nor a value that should be one.
    """
    hidden = {key: value for key, value in values.items() if key in secrets or key in SECRET_KEYS}
    problems = [
        f"{NAMESPACE}:{key} is in plain text; encrypt it with `pulumi config set --secret {key}`"
        for key in SECRET_KEYS
        if key in values and key not in secrets
    ]
    try:
        config = _parsed(values, hidden)
    except ConfigError as error:
        problems.append(str(error))
    if problems:
        raise ConfigError(_without(hidden.values(), "\n".join(problems)))
    return config


def _without(secrets: Iterable[str], text: str) -> str:
    """The text without the content of secrets, also where another key has the same value."""
    found = {word for each in secrets for word in (each, *_texts(_json(each))) if len(word) >= _SHORTEST_SECRET}
    for word in sorted(found, key=len, reverse=True):
        for shown in (word, json.dumps(word)[1:-1]):
            text = text.replace(shown, "[secret]")
    return text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(each)
    elif isinstance(value, str | int | float):
        yield str(value)


def _parsed(values: Mapping[str, str], secrets: Container[str]) -> StackConfig:
    keys = _names(MODEL)
    decoded = {key: _decoded(key, value) if key in keys else value for key, value in values.items()}
    try:
        return MODEL.model_validate(decoded)
    except ValidationError as error:
        lines = [_problem(detail, decoded, secrets) for detail in error.errors(include_url=False)]
        raise ConfigError("\n".join(lines)) from None


_SHORTEST_SECRET = 8
"""Shorter texts occur in ordinary words."""


def _decoded(key: str, value: str) -> Any:
    field = next(f for f in MODEL.model_fields.values() if f.alias == key)
    return value if field.annotation is str or key in SECRET_KEYS else _json(value)


def _json(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value  # validation reports what is allowed instead


def _problem(detail: ErrorDetails, values: Mapping[str, Any], secrets: Container[str]) -> str:
    """One line: the key, its value, what is allowed."""
    location = detail["loc"]
    of_key = location[-1] == "[key]"
    location = location[:-1] if of_key else location
    path = str(location[0]) if location and location[0] in secrets else _path(location)
    last = str(location[-1])
    match detail["type"]:
        case "missing":
            return f"{NAMESPACE}:{path} is missing: {_description(location)}"
        case "extra_forbidden":
            return _unknown_key(path, last, _names(_section(location[:-1])))
        case "enum" if of_key:
            return _unknown_key(path, last, [controller.value for controller in Controller])
        case "enum":
            allowed = [member.value for member in (Executor if location[0] == "executors" else Role)]
            why = f"{nearest(str(_value(location, values)), allowed)}allowed: {', '.join(allowed)}"
        case "value_error":
            why = str(detail["ctx"]["error"])
        case "too_short" | "string_too_short":
            why = "allowed: not empty"
        case "int_type" | "greater_than_equal" | "less_than_equal":
            why = f"allowed: {_numbers(location)}"
        case "model_type":
            why = f"allowed: a map of {', '.join(_names(_section(location)))}"
        case kind:
            why = f"allowed: {_TYPES.get(kind, detail['msg'])}"
    if location[0] in secrets:
        return line(path, "[secret]", why)
    if detail["type"] in _SHAPES:
        # Not quoted in full: it was meant for something else.
        return f"{NAMESPACE}:{path} is {_SHAPE[type(_value(location, values))]}: {why}"
    return line(path, _value(location, values), why)


_SHAPES = {"list_type", "dict_type", "model_type"}
_SHAPE: Mapping[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a map",
    type(None): "null",
}


_TYPES = {"string_type": "text", "list_type": "a list", "dict_type": "a map"}


def _unknown_key(path: str, key: str, known: Sequence[str]) -> str:
    return f"{NAMESPACE}:{path} is not a known key; {nearest(key, known)}allowed: {', '.join(known)}"


def _path(location: Sequence[int | str]) -> str:
    text = ""
    for part in location:
        plain = isinstance(part, str) and re.fullmatch(r"[\w-]+", part)
        text += (f".{part}" if text else str(part)) if plain else f"[{json.dumps(part)}]"
    return text


def _value(location: Sequence[int | str], values: Any) -> Any:
    for part in location:
        values = values[part]
    return values


def _names(section: type[BaseModel]) -> list[str]:
    return [str(field.alias) for field in section.model_fields.values()]


def _description(location: Sequence[int | str]) -> str:
    field = next(f for f in _section(location[:-1]).model_fields.values() if f.alias == location[-1])
    return field.description or ""


def _numbers(location: Sequence[int | str]) -> str:
    """The numbers that are allowed there, by the schema of the innermost map on the way to this place."""
    keys = _section(location).model_json_schema()["properties"]
    return next(_numbers_of(next(keys[part] for part in location if part in keys)))


def _numbers_of(schema: Any) -> Iterator[str]:
    """As an editor has them: of a key that may be null, or of the values of a map, too."""
    if "enum" in schema:
        yield ", ".join(map(str, schema["enum"]))
    elif "minimum" in schema:
        yield f"a whole number from {schema['minimum']} to {schema['maximum']}"
    for each in (*schema.get("anyOf", ()), schema.get("additionalProperties")):
        yield from _numbers_of(each or {})


def _section(location: Sequence[int | str]) -> type[BaseModel]:
    """The class of the innermost map on the way to this place."""
    found: type[BaseModel] = MODEL
    for part in location:
        annotation = next((f.annotation for f in found.model_fields.values() if f.alias == part), None)
        found = next(_models(annotation), found)
    return found


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The model that an annotation is, or has inside of a list or beside None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from _models(each)

"""What a stack's config says, as one typed object made once, and an error that names key, value and what is allowed.

`load()` reads the running program's config; `parse()` is the pure part. The keys are those of `docs/stack-config.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import pulumi
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from cloud_controller import clouds
from cloud_controller.load_balancers.nameable import OPTION, Nameable
from cloud_controller.load_balancers.sharing import Sharing

from . import inputs, stack_file_lines
from .clouds.aws import stack_section
from .clouds.aws.stack_section import AwsConfig
from .config_values import (
    ENDPOINT,
    NAMESPACE,
    Cidr,
    ConfigError,
    Controller,
    DnsLabel,
    Executor,
    Flag,
    NotEmpty,
    Role,
    Section,
    choice,
    line,
    nearest,
    pattern_of,
    url,
)

__all__ = [
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

MOST_MACHINES = 1000
"""In one pool."""


def _cloud(value: str) -> str:
    if value not in clouds.names():
        raise ValueError(f"{nearest(value, clouds.names())}allowed: {', '.join(clouds.names())}")
    return value


def _labels(labels: dict[str, str]) -> dict[str, str]:
    for key, value in labels.items():
        if problem := inputs.label_problem(key, value):
            raise ValueError(f"{json.dumps(key)} has {problem}")
    return labels


def _off(value: object) -> object:
    # To YAML, `off` without quotes is false.
    return "off" if value in (False, "false") else value


def _nameable(entry: str) -> str:
    try:
        Nameable.parse([entry])
    except ValueError as error:
        raise ValueError(f"allowed: {error}") from None
    return entry


class NodePoolConfig(Section):
    """Machines of one kind."""

    name: DnsLabel = Field(description="Unique in the cluster; machines are called CLUSTER-NAME-INDEX.")
    role: Role = Field(default=Role.WORKER, description="control-plane machines run nothing but the CCM.")
    count: int = Field(strict=True, ge=0, le=MOST_MACHINES, description="How many machines.")
    type: NotEmpty = Field(description="The cloud's machine type.")
    zones: Annotated[list[NotEmpty], Field(min_length=1)] = Field(
        description="Machine I is made in zone I modulo their number."
    )
    ingress: Flag = Field(default=False, description="Whether load balancers send traffic to these machines.")
    labels: Annotated[dict[str, str], AfterValidator(_labels)] = Field(
        default_factory=dict, description="Labels of the pool's nodes."
    )


class MycloudConfig(Section):
    """How the cloud `mycloud` is reached."""

    endpoint: Annotated[str, AfterValidator(url)] = Field(
        description="URL of mycloud's API.", json_schema_extra=pattern_of(ENDPOINT.pattern)
    )


class StackConfig(Section):
    """A stack: one cluster in one cloud."""

    cloud: Annotated[str, AfterValidator(_cloud)] = Field(description="The cloud that the cluster runs in.")
    cluster_name: DnsLabel = Field(description="The cluster's name, for people; its id is the cloud's.")
    node_pools: Annotated[list[NodePoolConfig], Field(min_length=1)] = Field(description="The cluster's machines.")
    executors: dict[Controller, Executor] = Field(
        default_factory=dict,
        description="Who runs a controller: daemon (the default), pulumi (node and route only), or the cloud (vendor).",
    )
    workloads: Flag = Field(default=False, description="Whether to run the demonstration web and echo workloads.")
    source_ranges: list[Cidr] = Field(
        default_factory=list,
        description="Who may connect to the workloads' load balancers, as IPv4 ranges; everybody if empty.",
    )
    shared_load_balancers: Annotated[str, BeforeValidator(_off), *choice(*Sharing)] = Field(
        default=Sharing.TAGGED.value,
        description="Which load balancers annotations of Services may name: none (off), their own namespace's and those"
        " tagged for it (tagged), or every one (any).",
    )
    annotations_may_name: list[Annotated[str, AfterValidator(_nameable)]] = Field(
        default_factory=list,
        description="Which resources of other people annotations of Services may name: KIND=PATTERN,"
        " KIND=tag:KEY=VALUE, or any.",
    )
    protect: Flag = Field(
        default=False, description="Whether network, cluster and load balancers are protected from deletion."
    )
    retain: Flag = Field(
        default=False, description="Whether a destroy leaves network, cluster and load balancers in the cloud."
    )
    aws: AwsConfig | None = Field(default=None, description="Settings of the cloud aws.")
    mycloud: MycloudConfig | None = Field(default=None, description="Settings of the cloud mycloud.")
    mycloud_token: SecretStr | None = Field(default=None, description="Token for mycloud's API (secret).")
    mycloud_controller_token: SecretStr | None = Field(
        default=None,
        description="Token for mycloud's API that the controllers get (secret); without it they get `mycloudToken`.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> StackConfig:
        names = [pool.name for pool in self.node_pools]
        for index, pool in enumerate(self.node_pools):
            key = f"nodePools[{index}]"
            if pool.name in names[:index]:
                raise ConfigError(line(f"{key}.name", pool.name, "another pool has this name; allowed: unique names"))
            longest = f"{self.cluster_name}-{pool.name}-{max(pool.count - 1, 0)}"
            if not inputs.DNS_LABEL.fullmatch(longest):
                why = f"machine {longest!r} would have a name of {len(longest)} characters; allowed: at most 63"
                raise ConfigError(line(f"{key}.name", pool.name, why))
        for controller, executor in self.executors.items():
            if executor is Executor.PULUMI and controller not in (Controller.NODE, Controller.ROUTE):
                why = "only node and route can be run by pulumi; allowed: daemon"
                raise ConfigError(line(f"executors.{controller}", executor, why))
        self._check_service_flags()
        if self.cloud == "aws":
            stack_section.check(self)
            return self
        for controller, executor in self.executors.items():
            if executor is Executor.VENDOR:
                why = f"{self.cloud} runs no controller itself; allowed: daemon, pulumi"
                raise ConfigError(line(f"executors.{controller}", executor, why))
        self.check_control_plane()
        if self.cloud == "mycloud":
            if self.mycloud is None:
                raise ConfigError(f"{NAMESPACE}:mycloud is missing: cloud mycloud needs {{endpoint: URL of its API}}")
            if self.mycloud_token is None or not self.mycloud_token.get_secret_value():
                raise ConfigError(f"{NAMESPACE}:mycloudToken is missing: cloud mycloud needs a token for its API")
        return self

    def _check_service_flags(self) -> None:
        vendors = self.aws is not None and self.aws.ccm_version is not None
        if self.executor(Controller.SERVICE) is Executor.DAEMON and not vendors:
            return
        for name, default in (("shared_load_balancers", Sharing.TAGGED.value), ("annotations_may_name", [])):
            if (given := getattr(self, name)) != default:
                why = f"only our own daemon's service controller knows it; allowed: {json.dumps(default)}"
                raise ConfigError(line(to_camel(name), given, why))

    def check_control_plane(self) -> None:
        """Raise ConfigError unless the cluster has a control-plane machine of its own."""
        if not any(pool.role is Role.CONTROL_PLANE and pool.count > 0 for pool in self.node_pools):
            why = "the cloud controller manager needs a machine; allowed: at least one pool of role control-plane"
            raise ConfigError(line("nodePools", [pool.name for pool in self.node_pools], why))

    def executor(self, controller: Controller) -> Executor:
        """Who runs this controller."""
        aws = self.aws if self.cloud == "aws" else None
        theirs = aws is not None and controller in stack_section.run_by_aws(aws)
        return self.executors.get(controller, Executor.VENDOR if theirs else Executor.DAEMON)

    def service_flags(self) -> list[str]:
        """The daemon's flags for what annotations of Services may name."""
        flags = []
        if self.shared_load_balancers != Sharing.TAGGED:
            flags.append(f"--shared-load-balancers={self.shared_load_balancers}")
        if self.annotations_may_name:
            flags.append(f"{OPTION}={','.join(self.annotations_may_name)}")
        return flags

    def run_by(self, executor: Executor) -> list[Controller]:
        """The controllers that this executor runs, in a fixed order."""
        return [controller for controller in Controller if self.executor(controller) is executor]


SECRET_KEYS = [str(f.alias) for f in StackConfig.model_fields.values() if SecretStr in get_args(f.annotation)]
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
        raise ConfigError(stack_file_lines.with_lines(str(error), values, file)) from None


def parse(values: Mapping[str, str], secrets: Container[str] = ()) -> StackConfig:
    """Make the typed config of the values by key (without namespace) as Pulumi hands them over: objects as JSON text.

    `secrets` are the keys that are encrypted in the stack file. Raises `ConfigError` with one line for each thing that
    is wrong, a secret in plain text among them. It shows nothing that is a secret, or is meant to be one.
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
    """The text without what stands in the secrets, also where another key has the same value."""
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
    keys = _names(StackConfig)
    decoded = {key: _decoded(key, value) if key in keys else value for key, value in values.items()}
    try:
        return StackConfig.model_validate(decoded)
    except ValidationError as error:
        lines = [_problem(detail, decoded, secrets) for detail in error.errors(include_url=False)]
        raise ConfigError("\n".join(lines)) from None


_SHORTEST_SECRET = 8
"""What is shorter is found in every other word."""


def _decoded(key: str, value: str) -> Any:
    field = next(f for f in StackConfig.model_fields.values() if f.alias == key)
    return value if field.annotation is str or key in SECRET_KEYS else _json(value)


def _json(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value  # validation says what is allowed instead


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
            why = f"allowed: a whole number from 0 to {MOST_MACHINES}"
        case "model_type":
            why = f"allowed: a map of {', '.join(_names(_section(location)))}"
        case kind:
            why = f"allowed: {_TYPES.get(kind, detail['msg'])}"
    if location[0] in secrets:
        return line(path, "[secret]", why)
    if detail["type"] in _SHAPES:
        # Not quoted whole: it was meant for something else.
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


def _section(location: Sequence[int | str]) -> type[BaseModel]:
    sections: dict[str, type[BaseModel]] = {"nodePools": NodePoolConfig, "aws": AwsConfig, "mycloud": MycloudConfig}
    return sections[str(location[0])] if location else StackConfig

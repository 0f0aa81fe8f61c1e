"""What a stack's config says, as one typed object made once, and an error that names key, value and what is allowed.

`load()` reads the running program's config; `parse()` is the pure part. The keys are those of `docs/stack-config.md`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Container, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import pulumi
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from cloud_controller import clouds

from . import inputs

NAMESPACE = "cloud-controller"
"""The namespace of the keys in a stack file: the project's name in Pulumi.yaml."""

ENDPOINT = re.compile(r"https?://[^\s/@]+/?")
AWS_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+")
KUBERNETES_VERSION = re.compile(r"1\.[0-9]{2}")
CCM_VERSION = re.compile(r"v1\.[0-9]{2}\.[0-9]+")
MOST_MACHINES = 1000
"""In one pool."""
OLDEST_WITH_KUBEADM = 31
"""Kubernetes' minor version with the form of kubeadm's configuration that machines are given (v1beta4)."""


class ConfigError(pulumi.RunError):
    """The stack's config is wrong. A RunError, so that the program ends with this text and without a traceback."""


class Controller(StrEnum):
    """The controllers whose executor a stack chooses."""

    NODE = "node"
    ROUTE = "route"
    SERVICE = "service"
    NODE_LIFECYCLE = "node-lifecycle"
    VOLUME = "volume"


class Executor(StrEnum):
    """Who runs a controller: the daemon in the cluster, `pulumi up` through CloudController, or the cloud's maker."""

    DAEMON = "daemon"
    PULUMI = "pulumi"
    VENDOR = "vendor"


class Role(StrEnum):
    """What the machines of a pool are for."""

    CONTROL_PLANE = "control-plane"
    WORKER = "worker"


def _dns_label(value: str) -> str:
    if not inputs.DNS_LABEL.fullmatch(value):
        raise ValueError("allowed: a DNS label of at most 63 characters: a-z, 0-9 and - (not at either end)")
    return value


def _cloud(value: str) -> str:
    if value not in clouds.names():
        raise ValueError(f"{_nearest(value, clouds.names())}allowed: {', '.join(clouds.names())}")
    return value


def _one_of(*allowed: str) -> AfterValidator:
    def check(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"{_nearest(value, allowed)}allowed: {', '.join(allowed)}")
        return value

    return AfterValidator(check)


def _matching(pattern: re.Pattern[str], allowed: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(f"allowed: {allowed}")
        return value

    return AfterValidator(check)


def _url(value: str) -> str:
    if not ENDPOINT.fullmatch(value):
        raise ValueError("allowed: http://HOST:PORT or https://HOST:PORT, without credentials")
    return value.rstrip("/")


def _cidr(value: str) -> str:
    if not inputs.is_cidr(value):
        raise ValueError("allowed: an IPv4 range as 10.4.0.0/16, without host bits")
    return value


def _labels(labels: dict[str, str]) -> dict[str, str]:
    for key, value in labels.items():
        if problem := inputs.label_problem(key, value):
            raise ValueError(f"{json.dumps(key)} has {problem}")
    return labels


def _no_text_for_bool(value: object) -> object:
    # pydantic also takes 1, "yes", "on": YAML's old traps. A stack file has true and false.
    if not isinstance(value, bool):
        raise ValueError("allowed: true, false")
    return value


def _pattern(pattern: str) -> dict[str, JsonValue]:
    """For the schema: editors mark what the validator, whose words are better, would refuse."""
    return {"pattern": f"^({pattern})$"}


DnsLabel = Annotated[str, AfterValidator(_dns_label), Field(json_schema_extra=_pattern(inputs.DNS_LABEL.pattern))]
Cidr = Annotated[
    str, AfterValidator(_cidr), Field(json_schema_extra=_pattern(r"([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}"))
]
Flag = Annotated[bool, BeforeValidator(_no_text_for_bool)]
NotEmpty = Annotated[str, StringConstraints(min_length=1)]


class _Section(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True)


class NodePoolConfig(_Section):
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


class MycloudConfig(_Section):
    """How the cloud `mycloud` is reached."""

    endpoint: Annotated[str, AfterValidator(_url)] = Field(
        description="URL of mycloud's API.", json_schema_extra=_pattern(ENDPOINT.pattern)
    )


def _choice(*allowed: str) -> tuple[AfterValidator, Any]:
    return _one_of(*allowed), Field(json_schema_extra={"enum": list(allowed)})


class AwsConfig(_Section):
    """What a cluster on AWS is made of."""

    region: Annotated[str, _matching(AWS_REGION, "a region such as eu-central-1")] = Field(
        description="The region.", json_schema_extra=_pattern(AWS_REGION.pattern)
    )
    control_plane: Annotated[str, *_choice("eks", "ec2")] = Field(
        default="eks", description="Who runs the control plane: AWS (eks), or pools of role control-plane (ec2)."
    )
    nodes: Annotated[str, *_choice("eks", "asg")] = Field(
        default="eks", description="What starts nodes: managed node groups (eks), or auto-scaling groups (asg)."
    )
    kubernetes_version: Annotated[str, _matching(KUBERNETES_VERSION, "a minor version such as '1.34'")] = Field(
        description="Kubernetes' minor version, quoted.", json_schema_extra=_pattern(KUBERNETES_VERSION.pattern)
    )
    vpc_cidr: Cidr | None = Field(default=None, description="The VPC's range, /16 to /20; 10.0.0.0/16 if not given.")
    pod_cidr: Cidr | None = Field(
        default=None, description="The pods' range where their routes are not run by vendor; 100.64.0.0/16."
    )
    service_cidr: Cidr | None = Field(
        default=None, description="The range of Services' cluster IPs; 172.20.0.0/16 if not given."
    )
    node_subnets: Annotated[str, *_choice("private", "public")] = Field(
        default="private", description="Where nodes are: private (behind NAT gateways) or public."
    )
    api_sources: list[Cidr] = Field(
        default_factory=list, description="Who reaches the API server from outside of the VPC; nobody if empty."
    )
    ccm: Annotated[str, *_choice("ours", "vendor")] = Field(
        default="ours", description="Whose cloud controller manager the daemon is: this project's, or AWS's."
    )
    ccm_image: NotEmpty | None = Field(default=None, description="Our daemon's image, in a registry that nodes reach.")
    ccm_version: Annotated[str, _matching(CCM_VERSION, "a version such as v1.32.0")] | None = Field(
        default=None, description="The version of AWS's controller, where ccm is vendor."
    )
    endpoint: Annotated[str, AfterValidator(_url)] | None = Field(
        default=None,
        description="URL of the simulator that stands in for AWS's APIs; the local site sets it.",
    )
    simulated: Flag = Field(
        default=False, description="Whether the stack is for a local site's simulator, and never for AWS."
    )


class StackConfig(_Section):
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
    protect: Flag = Field(
        default=False, description="Whether network, cluster and load balancers are protected from deletion."
    )
    retain: Flag = Field(
        default=False, description="Whether a destroy leaves network, cluster and load balancers in the cloud."
    )
    aws: AwsConfig | None = Field(default=None, description="Settings of the cloud aws.")
    mycloud: MycloudConfig | None = Field(default=None, description="Settings of the cloud mycloud.")
    mycloud_token: SecretStr | None = Field(default=None, description="Token for mycloud's API (secret).")

    @model_validator(mode="after")
    def _consistent(self) -> StackConfig:
        names = [pool.name for pool in self.node_pools]
        for index, pool in enumerate(self.node_pools):
            key = f"nodePools[{index}]"
            if pool.name in names[:index]:
                raise ConfigError(_line(f"{key}.name", pool.name, "another pool has this name; allowed: unique names"))
            longest = f"{self.cluster_name}-{pool.name}-{max(pool.count - 1, 0)}"
            if not inputs.DNS_LABEL.fullmatch(longest):
                why = f"machine {longest!r} would have a name of {len(longest)} characters; allowed: at most 63"
                raise ConfigError(_line(f"{key}.name", pool.name, why))
        for controller, executor in self.executors.items():
            if executor is Executor.PULUMI and controller not in (Controller.NODE, Controller.ROUTE):
                why = "only node and route can be run by pulumi; allowed: daemon"
                raise ConfigError(_line(f"executors.{controller}", executor, why))
        if self.cloud == "aws":
            self._consistent_on_aws()
            return self
        for controller, executor in self.executors.items():
            if executor is Executor.VENDOR:
                why = f"{self.cloud} runs no controller itself; allowed: daemon, pulumi"
                raise ConfigError(_line(f"executors.{controller}", executor, why))
        self._has_control_plane()
        if self.cloud == "mycloud":
            if self.mycloud is None:
                raise ConfigError(f"{NAMESPACE}:mycloud is missing: cloud mycloud needs {{endpoint: URL of its API}}")
            if self.mycloud_token is None or not self.mycloud_token.get_secret_value():
                raise ConfigError(f"{NAMESPACE}:mycloudToken is missing: cloud mycloud needs a token for its API")
        return self

    def _has_control_plane(self) -> None:
        if not any(pool.role is Role.CONTROL_PLANE and pool.count > 0 for pool in self.node_pools):
            why = "the cloud controller manager needs a machine; allowed: at least one pool of role control-plane"
            raise ConfigError(_line("nodePools", [pool.name for pool in self.node_pools], why))

    def _consistent_on_aws(self) -> None:
        if self.aws is None:
            raise ConfigError(f"{NAMESPACE}:aws is missing: cloud aws needs {{region, kubernetesVersion, …}}")
        if self.executor(Controller.VOLUME) is not Executor.VENDOR:
            why = "AWS's volumes are those of its own driver (EBS CSI); allowed: vendor"
            raise ConfigError(_line(f"executors.{Controller.VOLUME}", self.executor(Controller.VOLUME), why))
        for index, pool in enumerate(self.node_pools):
            for place, zone in enumerate(pool.zones):
                if not zone.startswith(self.aws.region) or zone == self.aws.region:
                    why = f"allowed: zones of region {self.aws.region}, such as {self.aws.region}a"
                    raise ConfigError(_line(f"nodePools[{index}].zones[{place}]", zone, why))
            if pool.ingress:
                why = "label the pool and name the label in the Services' setting target_node_labels; allowed: false"
                raise ConfigError(_line(f"nodePools[{index}].ingress", pool.ingress, why))
        if self.aws.simulated != (self.aws.endpoint is not None):
            why = "run the stack by `make`, which sets aws.endpoint; allowed without it: false"
            if self.aws.endpoint is not None:
                why = "aws.endpoint is a simulator's; allowed with it: true"
            raise ConfigError(_line("aws.simulated", self.aws.simulated, why))
        if self.aws.control_plane == "eks":
            self._consistent_on_eks()
        else:
            self._consistent_on_ec2(self.aws)
        if (self.aws.ccm == "vendor") != (self.aws.ccm_version is not None):
            raise ConfigError(_line("aws.ccmVersion", self.aws.ccm_version, "goes with ccm: vendor, and with it alone"))

    def _consistent_on_eks(self) -> None:
        for index, pool in enumerate(self.node_pools):
            if pool.role is Role.CONTROL_PLANE:
                why = "AWS runs the control plane; allowed: worker"
                raise ConfigError(_line(f"nodePools[{index}].role", pool.role, why))
        zones = sorted({zone for pool in self.node_pools for zone in pool.zones})
        if len(zones) < 2:
            why = f"all in {zones[0]}, and EKS asks for subnets in two zones; allowed: pools with two zones or more"
            raise ConfigError(_line("nodePools", [pool.name for pool in self.node_pools], why))

    def _consistent_on_ec2(self, aws: AwsConfig) -> None:
        self._has_control_plane()
        if aws.nodes != "asg":
            why = "managed node groups join EKS alone; allowed: asg"
            raise ConfigError(_line("aws.nodes", aws.nodes, why))
        planes = [(i, pool) for i, pool in enumerate(self.node_pools) if pool.role is Role.CONTROL_PLANE]
        if len(planes) > 1:
            why = "another pool is the control plane; allowed: one pool of role control-plane"
            raise ConfigError(_line(f"nodePools[{planes[1][0]}].role", planes[1][1].role, why))
        index, plane = planes[0]
        if plane.count % 2 == 0:
            why = "etcd needs a majority; allowed: an odd number of control-plane machines"
            raise ConfigError(_line(f"nodePools[{index}].count", plane.count, why))
        if int(aws.kubernetes_version.partition(".")[2]) < OLDEST_WITH_KUBEADM:
            why = f"allowed with controlPlane ec2: 1.{OLDEST_WITH_KUBEADM} or newer"
            raise ConfigError(_line("aws.kubernetesVersion", aws.kubernetes_version, why))

    def executor(self, controller: Controller) -> Executor:
        """Who runs this controller."""
        ours = not (self.cloud == "aws" and controller is Controller.VOLUME)
        return self.executors.get(controller, Executor.DAEMON if ours else Executor.VENDOR)

    def run_by(self, executor: Executor) -> list[Controller]:
        """The controllers that this executor runs, in a fixed order."""
        return [controller for controller in Controller if self.executor(controller) is executor]


def load() -> StackConfig:
    """The config of the stack whose program is running. Raises `ConfigError`."""
    prefix = f"{NAMESPACE}:"
    settings: dict[str, Any] = {**pulumi.runtime.config.get_config_env(), **pulumi.runtime.config.CONFIG.get()}
    values = {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}
    return parse(values, {key for key in values if pulumi.runtime.config.is_config_secret(prefix + key)})


def parse(values: Mapping[str, str], secrets: Container[str] = ()) -> StackConfig:
    """Make the typed config of the values by key (without namespace) as Pulumi hands them over: objects as JSON text.

    Raises `ConfigError` with one line for each thing that is wrong; of `secrets`, keys too, it shows no value.
    """
    keys = _names(StackConfig)
    decoded = {key: _decoded(key, value) if key in keys else value for key, value in values.items()}
    for key in _OF_ONE_CLOUD & decoded.keys():
        if not decoded[key]:
            del decoded[key]  # the project's default, which every key has that not every stack needs
    try:
        return StackConfig.model_validate(decoded)
    except ValidationError as error:
        lines = [_problem(detail, decoded, secrets) for detail in error.errors(include_url=False)]
        raise ConfigError("\n".join(lines)) from None


_OF_ONE_CLOUD = {"aws", "mycloud", "mycloudToken"}


def _decoded(key: str, value: str) -> Any:
    field = next(f for f in StackConfig.model_fields.values() if f.alias == key)
    if field.annotation is str or key == "mycloudToken":
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value  # validation says what is allowed instead


def _problem(detail: ErrorDetails, values: Mapping[str, Any], secrets: Container[str]) -> str:
    """One line: the key, its value, what is allowed."""
    location = detail["loc"]
    of_key = location[-1] == "[key]"
    location = location[:-1] if of_key else location
    path = _path(location)
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
            why = f"{_nearest(str(_value(location, values)), allowed)}allowed: {', '.join(allowed)}"
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
    return _line(path, "[secret]" if location[0] in secrets else _value(location, values), why)


_TYPES = {"string_type": "text", "list_type": "a list", "dict_type": "a map"}


def _unknown_key(path: str, key: str, known: Sequence[str]) -> str:
    return f"{NAMESPACE}:{path} is not a known key; {_nearest(key, known)}allowed: {', '.join(known)}"


def _line(path: str, value: object, why: str) -> str:
    # Credentials of a URL are taken out: whoever put them there may not know that errors land in logs.
    shown = re.sub(r"//[^/@\s]*@", "//[secret]@", json.dumps(value, default=str))
    return f"{NAMESPACE}:{path} is {shown}: {why}"


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


def _nearest(word: str, known: Sequence[str]) -> str:
    matches = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {matches[0]!r}? " if matches else ""

"""A stack's config as one typed object: the keys that every cloud has, and what must fit together."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator
from pydantic.alias_generators import to_camel

from cloud_controller.controllers.service.address_changes import OPTION as ADDRESS_CHANGES
from cloud_controller.controllers.service.address_changes import AddressChanges
from cloud_controller.doctor import cron_job
from cloud_controller.load_balancers.nameable import OPTION, Nameable
from cloud_controller.load_balancers.readiness_gates import Mode
from cloud_controller.load_balancers.sharing import SHARE, SHARE_OPTION, Sharing
from cloud_controller.monitoring.manifests import Mode as Monitoring
from cloud_controller.plan import DIGEST_LENGTH
from cloud_controller.service_admission import Admission

from . import inputs
from .config_values import (
    MOST_MACHINES,
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
)
from .existing_config import EXISTING, KUBECONFIG, NEW, ExistingConfig, check_existing

S = TypeVar("S", bound="CloudSection")

AUTO = "auto"
"""Leaves a choice to the cloud."""
_SERVICE = re.compile(f"{inputs.DNS_LABEL.pattern}/{inputs.DNS_LABEL.pattern}")
_DIGEST = re.compile(f"[0-9a-f]{{{DIGEST_LENGTH}}}")


def _labels(labels: dict[str, str]) -> dict[str, str]:
    for key, value in labels.items():
        if problem := inputs.label_problem(key, value):
            raise ValueError(f"{json.dumps(key)} {problem}")
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


def _schedule(schedule: str) -> str:
    if schedule and not cron_job.is_schedule(schedule):
        raise ValueError("allowed: five fields, such as '0 * * * *'")
    return schedule


def _gateway(url: str) -> str:
    if url and cron_job.gateway_port(url) is None:
        raise ValueError(f"allowed: {cron_job.GATEWAY}")
    return url


def _acknowledgement(entry: dict[str, str]) -> dict[str, str]:
    for service, digest in entry.items():
        if not _SERVICE.fullmatch(service) or not _DIGEST.fullmatch(digest):
            raise ValueError('allowed: NAMESPACE/NAME: "DIGEST", as the preview that fails prints it')
    return entry


class NodePoolConfig(Section):
    """Machines of one kind."""

    name: DnsLabel = Field(description="Unique in the cluster; machines are called CLUSTER-NAME-INDEX.")
    role: Role = Field(default=Role.WORKER, description="control-plane machines run nothing but the CCM.")
    count: int = Field(strict=True, ge=0, le=MOST_MACHINES, description="The number of machines.")
    type: NotEmpty = Field(description="The cloud's machine type.")
    zones: Annotated[list[NotEmpty], Field(min_length=1)] = Field(
        description="The zones of the machines, assigned in turn: machine I gets zone I modulo the number of zones."
    )
    ingress: Flag = Field(default=False, description="Whether load balancers send traffic to these machines.")
    labels: Annotated[dict[str, str], AfterValidator(_labels)] = Field(
        default_factory=dict, description="Labels of the pool's nodes."
    )


class CloudSection(Section):
    """The section of a stack's config that is one cloud's own, under the cloud's name; a cloud derives its own."""

    secret_keys: ClassVar[Mapping[str, str]] = {}
    """Further keys of the cloud, beside its section, that must be encrypted, with their descriptions."""
    of_new: ClassVar[Collection[str]] = ()
    """The fields that say how a new cluster is made; refused with `cluster: existing`."""
    of_existing: ClassVar[Collection[str]] = ()
    """The fields that identify what an existing cluster has; refused with `cluster: new`."""

    def check(self, stack: StackConfig) -> None:
        """Raise ConfigError for the first thing in the stack that does not fit the cloud."""
        for controller, executor in stack.executors.items():
            if executor is Executor.VENDOR:
                why = f"{stack.cloud} runs no controllers itself; allowed: daemon, pulumi"
                raise ConfigError(line(f"executors.{controller}", executor, why))
        stack.check_control_plane()

    def check_existing(self, stack: StackConfig) -> None:
        """Raise ConfigError for an identifier of the existing cluster that the cloud cannot have given."""

    def run_by_vendor(self) -> Collection[Controller]:
        """The controllers that the cloud's own software runs unless the stack names another executor."""
        return ()

    def runs_our_daemon(self) -> bool:
        """Whether the cloud controller manager is this project's, not that of the cloud's maker."""
        return True


class StackConfig(Section):
    """A stack: one cluster in one cloud. `stack_config` derives the class that has the clouds' keys too."""

    cloud: str = Field(description="The cloud that the cluster runs in.")
    cluster: Annotated[str, *choice(NEW, EXISTING)] = Field(
        default=NEW, description="Whether the stack makes the cluster (new) or only runs in one (existing)."
    )
    cluster_name: DnsLabel = Field(description="The cluster's name, for people; the cloud assigns its id.")
    existing: ExistingConfig | None = Field(
        default=None, description="The identifiers of the existing cluster; required with `cluster: existing`."
    )
    kubeconfig: SecretStr | None = Field(
        default=None, description="The existing cluster's kubeconfig (secret); required with `cluster: existing`."
    )
    node_pools: list[NodePoolConfig] = Field(
        default_factory=list, description="The machines of a new cluster; at least one pool."
    )
    executors: dict[Controller, Executor] = Field(
        default_factory=dict,
        description="Who runs a controller: daemon (the default), pulumi (node and route only), or the cloud (vendor).",
    )
    workloads: Flag = Field(default=False, description="Whether to run the demonstration web and echo workloads.")
    source_ranges: list[Cidr] = Field(
        default_factory=list,
        description="IPv4 ranges that may connect to the workloads' load balancers; everyone if empty.",
    )
    shared_load_balancers: Annotated[str, BeforeValidator(_off), *choice(*Sharing)] = Field(
        default=Sharing.TAGGED.value,
        description="Which load balancers annotations of Services may name: none (off), their own namespace's and those"
        " tagged for it (tagged), or all (any).",
    )
    shared_listeners_per_namespace: int = Field(
        default=SHARE,
        strict=True,
        ge=0,
        le=1000,
        description="How many listeners each namespace may have on a load balancer that is shared with everybody; 0: no"
        " limit.",
    )
    annotations_may_name: list[Annotated[str, AfterValidator(_nameable)]] = Field(
        default_factory=list,
        description="Which existing cloud resources annotations of Services may name: KIND=PATTERN,"
        " KIND=tag:KEY=VALUE, or any.",
    )
    readiness_gates: Annotated[str, BeforeValidator(_off), *choice(AUTO, *Mode)] = Field(
        default=AUTO,
        description="Readiness gates of pods behind load balancers: none (off), those in pod templates (by-hand), or"
        " added by an admission policy (inject; Kubernetes 1.36); auto: inject in clouds with classes that have gates,"
        " otherwise off.",
    )
    service_admission: Annotated[str, BeforeValidator(_off), *choice(*Admission)] = Field(
        default=Admission.OFF.value,
        description="What the API server does at once with Services whose annotations the controller would reject:"
        " deny, warn or off. A namespace's label may say otherwise. Kubernetes 1.30.",
    )
    monitoring: Annotated[str, BeforeValidator(_off), *choice(*Monitoring)] = Field(
        default=Monitoring.OFF.value,
        description="How Prometheus finds the cloud controller manager and its alert rules: objects of the Prometheus"
        " operator, whose definitions the cluster must have (operator), annotations of its pods (annotations), or not"
        " (off).",
    )
    address_changes: Annotated[str, *choice(*AddressChanges)] = Field(
        default=AddressChanges.ALLOW.value,
        description="Whether a change that gives a Service another address is made at once (allow), or held until the"
        " Service's annotation acknowledges it (acknowledge).",
    )
    replace_address: list[Annotated[dict[str, str], AfterValidator(_acknowledgement)]] = Field(
        default_factory=list,
        description="The changes that may give protected Services other addresses, as NAMESPACE/NAME: DIGEST; the"
        " preview that such a change fails prints the entry.",
    )
    doctor_schedule: Annotated[str, AfterValidator(_schedule)] = Field(
        default="",
        description="When `cloud-controller doctor` runs in the cluster, as a CronJob's schedule in UTC; empty: never.",
    )
    doctor_push_gateway: Annotated[str, AfterValidator(_gateway)] = Field(
        default="",
        description="URL of the Prometheus Pushgateway that gets the doctor's findings as metrics; empty: none.",
    )
    protect: Flag = Field(
        default=False, description="Whether network, cluster and load balancers are protected from deletion."
    )
    retain: Flag = Field(
        default=False, description="Whether a destroy leaves network, cluster and load balancers in the cloud."
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
                why = "pulumi can run only node and route; allowed: daemon"
                raise ConfigError(line(f"executors.{controller}", executor, why))
        if self._section is None:
            raise ConfigError(f"{NAMESPACE}:{self.cloud} is missing: cloud {self.cloud} needs {self._required_keys()}")
        self._check_shape(self._section)
        self._check_service_flags()
        if self.doctor_schedule and not self.run_by(Executor.DAEMON):
            why = 'the stack runs no cloud controller manager of this project; allowed: ""'
            raise ConfigError(line("doctorSchedule", self.doctor_schedule, why))
        if self.doctor_push_gateway and not self.doctor_schedule:
            raise ConfigError(line("doctorPushGateway", self.doctor_push_gateway, "only with doctorSchedule"))
        if self.monitoring != Monitoring.OFF and not self.run_by(Executor.DAEMON):
            why = 'the stack runs no cloud controller manager; allowed: "off"'
            raise ConfigError(line("monitoring", self.monitoring, why))
        self._section.check(self)
        return self

    def _check_shape(self, section: CloudSection) -> None:
        """Raise ConfigError unless the stack has what its key `cluster` needs, and nothing of the other kind."""
        if self.cluster == EXISTING:
            self._refuse(section, ("node_pools",), section.of_new)
            check_existing(self.existing, self.kubeconfig)
            section.check_existing(self)
            return
        self._refuse(section, ("existing", KUBECONFIG), section.of_existing)
        if "node_pools" not in self.model_fields_set:
            raise ConfigError(f"{NAMESPACE}:nodePools is missing: a new cluster needs machines")
        if not self.node_pools:
            raise ConfigError(line("nodePools", [], "allowed: not empty, because a new cluster needs machines"))

    def _refuse(self, section: CloudSection, keys: Collection[str], of_cloud: Collection[str]) -> None:
        other = NEW if self.cluster == EXISTING else EXISTING
        for model, place, names in ((self, "", keys), (section, f"{self.cloud}.", of_cloud)):
            for name in names:
                # Pulumi sets a declared key to its default.
                if name in model.model_fields_set and getattr(model, name) not in (None, []):
                    why = f"is only for `cluster: {other}`; with `cluster: {self.cluster}` remove the key"
                    raise ConfigError(f"{NAMESPACE}:{place}{to_camel(name)} {why}")

    def _check_service_flags(self) -> None:
        if self.serves_load_balancers:
            return
        defaults = {
            "shared_load_balancers": Sharing.TAGGED.value,
            "shared_listeners_per_namespace": SHARE,
            "annotations_may_name": [],
            "readiness_gates": AUTO,
            "service_admission": Admission.OFF.value,
            "address_changes": AddressChanges.ALLOW.value,
            "replace_address": [],
        }
        for name, default in defaults.items():
            if (given := getattr(self, name)) != default:
                why = f"only this project's service controller supports it; allowed: {json.dumps(default)}"
                raise ConfigError(line(to_camel(name), given, why))

    @property
    def _section(self) -> CloudSection | None:
        # A field of the class that `stack_config` makes of this one and of the clouds that there are.
        section: CloudSection | None = getattr(self, self.cloud)
        return section

    def _required_keys(self) -> str:
        kind: type[CloudSection] = get_args(type(self).model_fields[self.cloud].annotation)[0]
        return f"{{{', '.join(str(f.alias) for f in kind.model_fields.values() if f.is_required())}}}"

    def section(self, kind: type[S]) -> S:
        """The section of the stack's own cloud, which must be a `kind`."""
        if not isinstance(self._section, kind):
            raise TypeError(f"the section of cloud {self.cloud} is not a {kind.__name__}")
        return self._section

    def secret(self, key: str) -> str:
        """The value of one of the cloud's secret keys; "" if it is not set."""
        value: SecretStr | None = getattr(self, key)
        return value.get_secret_value() if value else ""

    def check_control_plane(self) -> None:
        """Raise ConfigError unless a new cluster has a control-plane machine of its own."""
        if self.existing is not None:
            return
        if not any(pool.role is Role.CONTROL_PLANE and pool.count > 0 for pool in self.node_pools):
            why = "the cloud controller manager needs a machine; allowed: at least one pool of role control-plane"
            raise ConfigError(line("nodePools", [pool.name for pool in self.node_pools], why))

    def check_own_control_plane(self) -> None:
        """Raise ConfigError unless one pool of a new cluster is its control plane, with machines for a majority."""
        self.check_control_plane()
        planes = [(index, pool) for index, pool in enumerate(self.node_pools) if pool.role is Role.CONTROL_PLANE]
        if len(planes) > 1:
            why = "another pool is the control plane already; allowed: one pool of role control-plane"
            raise ConfigError(line(f"nodePools[{planes[1][0]}].role", planes[1][1].role, why))
        for index, plane in planes:
            if plane.count % 2 == 0:
                why = "etcd needs a majority; allowed: an odd number of control-plane machines"
                raise ConfigError(line(f"nodePools[{index}].count", plane.count, why))

    @property
    def control_plane_machines(self) -> int:
        """How many machines run the control plane; 0: the cloud does."""
        if self.existing is not None:
            return self.existing.control_plane_nodes
        return sum(pool.count for pool in self.node_pools if pool.role is Role.CONTROL_PLANE)

    def executor(self, controller: Controller) -> Executor:
        """Who runs this controller."""
        theirs = self.section(CloudSection).run_by_vendor()
        return self.executors.get(controller, Executor.VENDOR if controller in theirs else Executor.DAEMON)

    @property
    def serves_load_balancers(self) -> bool:
        """Whether this project's daemon runs the service controller."""
        return self.executor(Controller.SERVICE) is Executor.DAEMON and self.section(CloudSection).runs_our_daemon()

    def acknowledged(self, service: str) -> str | None:
        """The digest of the change that may give the Service NAMESPACE/NAME another address."""
        return next((entry[service] for entry in reversed(self.replace_address) if service in entry), None)

    def service_flags(self) -> list[str]:
        """The daemon's flags for what annotations of Services may do."""
        flags = []
        if self.shared_load_balancers != Sharing.TAGGED:
            flags.append(f"--shared-load-balancers={self.shared_load_balancers}")
        if self.shared_listeners_per_namespace != SHARE:
            flags.append(f"{SHARE_OPTION}={self.shared_listeners_per_namespace}")
        if self.annotations_may_name:
            flags.append(f"{OPTION}={','.join(self.annotations_may_name)}")
        if self.address_changes != AddressChanges.ALLOW:
            flags.append(f"{ADDRESS_CHANGES}={self.address_changes}")
        return flags

    def run_by(self, executor: Executor) -> list[Controller]:
        """The controllers that this executor runs, in a fixed order."""
        return [controller for controller in Controller if self.executor(controller) is executor]

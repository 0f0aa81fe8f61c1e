"""The section `openstack` of a stack file: how the controllers reach the cloud, and where load balancers are."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.alias_generators import to_camel

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.openstack.config import parse

from ...config_values import (
    NAMESPACE,
    Cidr,
    ConfigError,
    Controller,
    Day,
    Executor,
    Flag,
    NotEmpty,
    Section,
    choice,
    line,
    matching,
    pattern_of,
)
from ...existing_config import EXISTING
from ...stack_model import CloudSection, StackConfig
from .access import SECRET, rendered

_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CREDENTIAL = re.compile("[0-9a-f]{32}")
_KEYSTONE = re.compile(r"https?://[^\s@]+/v3")
_SELECTOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9./_-]*(=[A-Za-z0-9._-]*)?")

Uuid = Annotated[
    str,
    matching(_UUID, "an ID, such as 6f0a1c9e-8a52-4c7b-9e0d-1b2f3a4c5d6e"),
    Field(json_schema_extra=pattern_of(_UUID.pattern)),
]


class NetworksConfig(Section):
    """Where load balancers and their floating IPs are."""

    floating_network_id: Uuid | None = Field(default=None, description="The external network of floating IPs.")
    floating_subnet_id: Uuid | None = Field(default=None, description="The subnet of floating IPs.")
    floating_subnet: NotEmpty | None = Field(
        default=None, description="The name of the floating IPs' subnet, or a pattern such as public-*."
    )
    floating_subnet_tags: list[NotEmpty] = Field(
        default_factory=list, description="The tags that the floating IPs' subnet must have."
    )
    network_id: Uuid | None = Field(default=None, description="The network of load balancers' own addresses.")
    subnet_id: Uuid | None = Field(default=None, description="The subnet of load balancers' own addresses.")
    member_subnet_id: Uuid | None = Field(default=None, description="The subnet from which load balancers reach nodes.")


class LoadBalancersConfig(NetworksConfig):
    """The defaults of Services, which their annotations override."""

    classes: dict[Annotated[str, matching(re.compile("[A-Za-z0-9._-]+"), "letters, digits, . _ -")], NetworksConfig] = (
        Field(default_factory=dict, description="Networks by the class that a Service's annotation names.")
    )
    internal: Flag = Field(default=False, description="Whether load balancers have no floating IP.")
    method: Annotated[str, *choice("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP")] | None = Field(
        default=None, description="How a load balancer chooses a member; ROUND_ROBIN if not given."
    )
    flavor_id: Uuid | None = Field(default=None, description="The flavor of load balancers.")
    availability_zone: NotEmpty | None = Field(default=None, description="The availability zone of load balancers.")
    create_monitor: Flag = Field(default=False, description="Whether load balancers check their members.")
    monitor_delay: Annotated[int, Field(strict=True, ge=1, le=3600)] | None = Field(
        default=None, description="Seconds between two checks; 5 if not given."
    )
    monitor_timeout: Annotated[int, Field(strict=True, ge=1, le=3600)] | None = Field(
        default=None, description="Seconds after which a check fails; 3 if not given."
    )
    monitor_max_retries: Annotated[int, Field(strict=True, ge=1, le=10)] | None = Field(
        default=None, description="Successful checks until a member gets traffic; 1 if not given."
    )
    monitor_max_retries_down: Annotated[int, Field(strict=True, ge=1, le=10)] | None = Field(
        default=None, description="Failed checks until it gets none; 3 if not given."
    )
    manage_security_groups: Flag = Field(
        default=False, description="Whether each Service has a security group that opens its nodes."
    )
    node_selector: list[Annotated[str, matching(_SELECTOR, "KEY or KEY=VALUE")]] = Field(
        default_factory=list, description="The labels of nodes that become members."
    )


class OpenstackConfig(CloudSection):
    """How the controllers of a cluster reach OpenStack."""

    secret_keys: ClassVar = {SECRET: "The secret of the application credential (secret)."}

    auth_url: (
        Annotated[
            str, matching(_KEYSTONE, "Keystone's URL with its version, such as https://keystone.example.com:5000/v3")
        ]
        | None
    ) = Field(
        default=None,
        description="Keystone's URL, with /v3; required, but the local site sets it.",
        json_schema_extra=pattern_of(_KEYSTONE.pattern),
    )
    region: NotEmpty | None = Field(default=None, description="The region; required if the cloud has several.")
    application_credential_id: Annotated[str, matching(_CREDENTIAL, "32 hexadecimal digits")] | None = Field(
        default=None,
        description="The ID of the controllers' application credential; required, but the local site sets it.",
        json_schema_extra=pattern_of(_CREDENTIAL.pattern),
    )
    credential_expires: Day | None = Field(
        default=None,
        description="The last day of the application credential, YYYY-MM-DD; the Secret with the cloud config has it.",
    )
    interface: Annotated[str, *choice("public", "internal", "admin")] = Field(
        default="public", description="The endpoints of the catalog that the controllers use."
    )
    ca_file: NotEmpty | None = Field(
        default=None, description="The file in the daemon's container with the authorities that signed the endpoints."
    )
    internal_networks: list[NotEmpty] = Field(
        default_factory=list,
        description="Names of networks whose addresses are nodes' internal ones; all if empty.",
    )
    public_networks: list[NotEmpty] = Field(
        default_factory=list, description="Names of networks whose addresses are nodes' external ones."
    )
    address_sort_order: list[Cidr] = Field(
        default_factory=list, description="The ranges whose addresses come first among a node's."
    )
    router_id: Uuid | None = Field(
        default=None, description="The router of pod routes; required unless another program writes routes."
    )
    load_balancers: LoadBalancersConfig | None = Field(
        default=None, description="Where load balancers are, and how they work unless a Service says otherwise."
    )
    ccm_image: NotEmpty | None = Field(
        default=None, description="The image of this project's daemon, in a registry that the nodes can reach."
    )
    simulated: Flag = Field(
        default=False,
        description="Whether the stack runs only on this machine: OpenStack's own services, without a hypervisor.",
    )

    def run_by_vendor(self) -> Collection[Controller]:
        # Volumes are those of Cinder's CSI driver; without a router, pods have no routes.
        without_routes = () if self.router_id else (Controller.ROUTE,)
        return (Controller.VOLUME, *without_routes)

    def check(self, stack: StackConfig) -> None:
        if stack.cluster != EXISTING:
            raise ConfigError(
                line("cluster", stack.cluster, "on OpenStack, stacks run in clusters that exist; allowed: existing")
            )
        for key in ("auth_url", "application_credential_id"):
            if not getattr(self, key):
                raise ConfigError(line(f"openstack.{to_camel(key)}", None, "must be set"))
        for controller, executor in stack.executors.items():
            _check_executor(controller, executor, self)
        if not stack.secret(SECRET):
            how = f"encrypt it with `pulumi config set --secret {SECRET}`"
            raise ConfigError(f"{NAMESPACE}:{SECRET} is missing: the application credential has a secret; {how}")
        try:
            parse(rendered(self.model_dump(by_alias=True), stack.secret(SECRET), "any"))
        except InvalidConfiguration as error:
            raise ConfigError(f"{NAMESPACE}:openstack: {error}") from None
        if stack.run_by(Executor.DAEMON) and self.ccm_image is None and not self.simulated:
            why = "nodes cannot pull the default image; allowed: the image that you pushed (`make image`)"
            raise ConfigError(line("openstack.ccmImage", self.ccm_image, why))

    def check_existing(self, stack: StackConfig) -> None:
        if stack.existing is not None and not _UUID.fullmatch(stack.existing.network_id):
            why = "not an ID of the cloud; allowed: the UUID of a network"
            raise ConfigError(line("existing.networkId", stack.existing.network_id, why))


def _check_executor(controller: Controller, executor: Executor, section: OpenstackConfig) -> None:
    if controller is Controller.VOLUME and executor is not Executor.VENDOR:
        why = "on OpenStack, Cinder's CSI driver manages volumes; allowed: vendor"
        raise ConfigError(line(f"executors.{controller}", executor, why))
    if controller is Controller.ROUTE and executor is not Executor.VENDOR and section.router_id is None:
        why = "openstack.routerId is not set; allowed without it: vendor"
        raise ConfigError(line(f"executors.{controller}", executor, why))
    if controller not in (Controller.VOLUME, Controller.ROUTE) and executor is Executor.VENDOR:
        why = "OpenStack runs no controllers itself; allowed: daemon, pulumi"
        raise ConfigError(line(f"executors.{controller}", executor, why))

"""The section `openstack` of a stack file: how the cloud is reached, what a new cluster is made of, load balancers."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

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
from ...stack_model import CloudSection, StackConfig
from ..common.ranges import overlap_problem
from ..common.user_data import OLDEST_WITH_KUBEADM
from .access import SECRET, of_new_cluster, rendered
from .settings import DEFAULT_NETWORK_CIDR, DEFAULT_POD_CIDR, DEFAULT_SERVICE_CIDR

_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CREDENTIAL = re.compile("[0-9a-f]{32}")
_KEYSTONE = re.compile(r"https?://[^\s@]+/v3")
_VERSION = re.compile(r"1\.[0-9]{2}")
_HTTP, _HTTPS = 80, 443
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
    manage_security_groups: Flag | None = Field(
        default=None,
        description="Whether each Service has a security group that opens its nodes. Set it to false until the groups"
        " are gone: the credential keeps the rights to remove them.",
    )
    node_selector: list[Annotated[str, matching(_SELECTOR, "KEY or KEY=VALUE")]] = Field(
        default_factory=list, description="The labels of nodes that become members."
    )


class OpenstackConfig(CloudSection):
    """How a cluster's controllers reach OpenStack, and what a new cluster is made of."""

    secret_keys: ClassVar = {
        SECRET: "The secret of an existing cluster's application credential (secret); a new one makes its own."
    }

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
        description="The ID of the application credential of an existing cluster's controllers; required there, but the"
        " local site sets it.",
        json_schema_extra=pattern_of(_CREDENTIAL.pattern),
    )
    credential_expires: Day | None = Field(
        default=None,
        description="The last day of the application credential, YYYY-MM-DD; the Secret with the cloud config has it."
        " In a new cluster another day makes a new credential.",
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
        default=None,
        description="The router of an existing cluster's pod routes; required unless another program writes routes.",
    )
    kubernetes_version: Annotated[str, matching(_VERSION, "a minor version such as '1.36', quoted")] | None = Field(
        default=None,
        description="Kubernetes' minor version, quoted; required for a new cluster.",
        json_schema_extra=pattern_of(_VERSION.pattern),
    )
    image_id: Uuid | None = Field(
        default=None,
        description="The machines' image, with cloud-init, dnf, and containerd in its repositories; required for a new"
        " cluster.",
    )
    external_network_id: Uuid | None = Field(
        default=None,
        description="The network to which a new cluster's router leads, with its floating IPs; required there.",
    )
    network_cidr: Cidr | None = Field(
        default=None, description="The range of the machines' subnet; 10.0.0.0/16 if not given."
    )
    pod_cidr: Cidr | None = Field(default=None, description="The pods' range; 172.20.0.0/16 if not given.")
    service_cidr: Cidr | None = Field(
        default=None, description="The range of Services' cluster IPs; 172.21.0.0/20 if not given."
    )
    api_sources: list[Cidr] = Field(
        default_factory=list,
        description="Ranges that may reach the API server by a floating IP; it has none if empty.",
    )
    control_plane_egress: list[Cidr] = Field(
        default_factory=list,
        description="Ranges that control-plane machines reach besides the cluster, DNS, NTP and, on port 443,"
        " everything: OpenStack's APIs, where they have other ports; 0.0.0.0/0 for no limit.",
    )
    credential_roles: list[NotEmpty] = Field(
        default_factory=list,
        description="The roles of a new cluster's application credential in its project; member and"
        " load-balancer_member if empty.",
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

    of_existing: ClassVar = ("application_credential_id", "router_id")
    of_new: ClassVar = (
        "kubernetes_version",
        "image_id",
        "external_network_id",
        "network_cidr",
        "pod_cidr",
        "service_cidr",
        "api_sources",
        "control_plane_egress",
        "credential_roles",
    )

    @property
    def has_router(self) -> bool:
        """Whether there is a router for pod routes; a new cluster makes one."""
        return bool(self.router_id or self.external_network_id)

    def run_by_vendor(self) -> Collection[Controller]:
        # Volumes are those of Cinder's CSI driver; without a router, pods have no routes.
        return (Controller.VOLUME, *(() if self.has_router else (Controller.ROUTE,)))

    def check(self, stack: StackConfig) -> None:
        is_new = stack.existing is None
        required = (
            ("external_network_id", "image_id", "kubernetes_version") if is_new else ("application_credential_id",)
        )
        for key in ("auth_url", *required):
            if not getattr(self, key):
                raise ConfigError(line(f"openstack.{to_camel(key)}", None, "must be set"))
        for controller, executor in stack.executors.items():
            _check_executor(controller, executor, self)
        if is_new:
            _check_new(stack, self)
        elif not stack.secret(SECRET):
            how = f"encrypt it with `pulumi config set --secret {SECRET}`"
            raise ConfigError(f"{NAMESPACE}:{SECRET} is missing: the application credential has a secret; {how}")
        try:
            parse(_cloud_config(self, "" if is_new else stack.secret(SECRET)))
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
    if controller is Controller.ROUTE and executor is not Executor.VENDOR and not section.has_router:
        why = "openstack.routerId is not set; allowed without it: vendor"
        raise ConfigError(line(f"executors.{controller}", executor, why))
    if controller not in (Controller.VOLUME, Controller.ROUTE) and executor is Executor.VENDOR:
        why = "OpenStack runs no controllers itself; allowed: daemon, pulumi"
        raise ConfigError(line(f"executors.{controller}", executor, why))


def _cloud_config(section: OpenstackConfig, secret: str) -> str:
    """What the CCM would get, but for what is only known once a new cluster is made."""
    given = section.model_dump(by_alias=True)
    if not section.external_network_id:
        return rendered(given, {"application-credential-secret": secret}, "any")
    made = {"application-credential-id": "any", "application-credential-secret": "any"}
    return rendered(of_new_cluster(given, "any"), made, "any")


def _check_new(stack: StackConfig, section: OpenstackConfig) -> None:
    stack.check_own_control_plane()
    if stack.secret(SECRET):
        raise ConfigError(f"{NAMESPACE}:{SECRET} is only for `cluster: existing`; a new cluster makes its credential")
    if section.simulated:
        why = "a site has a cluster already; allowed: false, or `cluster: existing`"
        raise ConfigError(line("openstack.simulated", section.simulated, why))
    for index, pool in enumerate(stack.node_pools):
        if pool.ingress:
            why = "label the pool and name the label in loadBalancers.nodeSelector; allowed: false"
            raise ConfigError(line(f"nodePools[{index}].ingress", pool.ingress, why))
    version = section.kubernetes_version or ""
    if int(version.partition(".")[2]) < OLDEST_WITH_KUBEADM:
        raise ConfigError(line("openstack.kubernetesVersion", version, f"allowed: 1.{OLDEST_WITH_KUBEADM} or newer"))
    ranges = (
        section.network_cidr or DEFAULT_NETWORK_CIDR,
        section.pod_cidr or DEFAULT_POD_CIDR,
        section.service_cidr or DEFAULT_SERVICE_CIDR,
    )
    if problem := overlap_problem(*ranges, called="network"):
        setting, found, why = problem
        raise ConfigError(line(f"openstack.{to_camel(setting)}", found, why))
    keystone = urlsplit(section.auth_url or "")
    port = keystone.port or (_HTTP if keystone.scheme == "http" else _HTTPS)
    if port != _HTTPS and not section.control_plane_egress:
        why = f"control-plane machines reach only port {_HTTPS}, and Keystone has {port}; allowed: the APIs' ranges"
        raise ConfigError(line("openstack.controlPlaneEgress", [], why))

"""What OpenStack's cloud config holds: the cloud.conf of openstack-cloud-controller-manager.

[Global]
cluster-id = prod-1                  ours, required: what tags carry
auth-url = https://keystone:5000/v3  required, unless a clouds.yaml says it
region = RegionOne                   required if the catalog has several
application-credential-id, -secret   or application-credential-name with the user
username or user-id, password        with tenant-id or tenant-name; domains: domain-…, user-domain-…, tenant-domain-…
ca-file                              the authorities to trust, instead of the system's
os-endpoint-type                     public (default), internal or admin
use-clouds, clouds-file, cloud       take all this from a cloud of a clouds.yaml

[Networking]  internal-network-name, public-network-name (repeated), ipv6-support-disabled, address-sort-order
[Route]       router-id              the router of pod routes; without it, there are none
[LoadBalancer], [LoadBalancerClass "NAME"]   see `load_balancer_config`

[BlockStorage], [Metadata] and [KeyManager], which other programs read from the same file, are accepted and ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network

from cloud_controller import logs
from cloud_controller.clouds.common.gcfg import Section, is_url, read
from cloud_controller.clouds.openstack.clouds_yaml import Cloud
from cloud_controller.clouds.openstack.credentials import ApplicationCredential, Credentials, Named, Password
from cloud_controller.clouds.openstack.files import read_cloud
from cloud_controller.clouds.openstack.load_balancer_config import CLASS_KEYS, KEYS, load_balancer_options
from cloud_controller.clouds.openstack.names import Interface
from cloud_controller.clouds.openstack.octavia.options import LoadBalancerOptions

_REFUSED = {
    "trust-id": "trusts are not supported; use an application credential",
    "trustee-id": "trusts are not supported; use an application credential",
    "trustee-password": "trusts are not supported; use an application credential",
    "cert-file": "client certificates are not supported",
    "key-file": "client certificates are not supported",
    "tls-insecure": "certificates are always verified; name the authority's with ca-file",
}
_KNOWN: Mapping[str, tuple[str, ...]] = {
    "Global": (
        *("application-credential-id", "application-credential-name", "application-credential-secret", "auth-url"),
        *("ca-file", "cloud", "clouds-file", "cluster-id", "domain-id", "domain-name", "os-endpoint-type", "password"),
        *("region", "tenant-domain-id", "tenant-domain-name", "tenant-id", "tenant-name", "use-clouds"),
        *("user-domain-id", "user-domain-name", "user-id", "username"),
        *_REFUSED,
    ),
    "LoadBalancer": KEYS,
    "LoadBalancerClass": CLASS_KEYS,
    "Networking": ("address-sort-order", "internal-network-name", "ipv6-support-disabled", "public-network-name"),
    "Route": ("router-id",),
    "BlockStorage": (
        *("bs-version", "ignore-volume-az", "ignore-volume-microversion", "node-volume-attach-limit"),
        *("rescan-on-resize", "trust-device-path"),
    ),
    "Metadata": ("request-timeout", "search-order"),
    "KeyManager": ("key-id",),
}
_INTERFACES: Mapping[str, Interface] = {
    "public": "public",
    "publicURL": "public",
    "internal": "internal",
    "internalURL": "internal",
    "admin": "admin",
    "adminURL": "admin",
}


ReadCloud = Callable[[str, str], Cloud]


@dataclass(frozen=True, slots=True)
class Networking:
    """Which of a server's addresses become a node's, and as what."""

    internal_networks: frozenset[str] = frozenset()
    """Names of networks; empty: every network."""
    public_networks: frozenset[str] = frozenset()
    without_ipv6: bool = False
    sort_order: tuple[IPv4Network | IPv6Network, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """A valid cloud config."""

    cluster_id: str
    auth_url: str
    credentials: Credentials
    region: str = ""
    interface: Interface = "public"
    ca_file: str | None = None
    networking: Networking = Networking()
    router_id: str | None = None
    load_balancers: LoadBalancerOptions | None = field(default_factory=LoadBalancerOptions)
    """None: [LoadBalancer] enabled is false."""


def parse(text: str, read_cloud: ReadCloud = read_cloud) -> Config:
    """Read a cloud config. Raises InvalidConfiguration that names section and key, and no value.

    `read_cloud` returns a cloud of a clouds.yaml, by the file's path and the cloud's name.
    """
    repeated = ("internal-network-name", "public-network-name")
    sections = read(text, _KNOWN, named=("LoadBalancerClass",), repeated=repeated)
    (one,), (networking,), (route,), (balancers,) = (
        sections[kind] for kind in ("Global", "Networking", "Route", "LoadBalancer")
    )
    for key, why in _REFUSED.items():
        # `tls-insecure = false` asks for nothing.
        if one.flag(key) if key == "tls-insecure" else one.text(key):
            raise one.wrong(key, why)
    cloud = _cloud(one, read_cloud)
    auth_url = one.text("auth-url") or cloud.auth_url or one.required("auth-url")
    if not is_url(auth_url):
        raise one.wrong("auth-url", "not a valid URL", "http://HOST:PORT/v3 or https://HOST/v3")
    return Config(
        cluster_id=one.matching("cluster-id", r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", "not a valid ID", "such as prod-1")
        or one.required("cluster-id"),
        auth_url=auth_url,
        credentials=_credentials(one) if cloud.credentials is None or _names_somebody(one) else cloud.credentials,
        region=one.text("region") or cloud.region,
        interface=_INTERFACES[one.one_of("os-endpoint-type", [*_INTERFACES], cloud.interface)],
        ca_file=one.text("ca-file") or cloud.ca_file,
        networking=Networking(
            frozenset(networking.texts("internal-network-name")),
            frozenset(networking.texts("public-network-name")),
            networking.flag("ipv6-support-disabled"),
            _sort_order(networking),
        ),
        router_id=route.text("router-id"),
        load_balancers=load_balancer_options(balancers, sections["LoadBalancerClass"]),
    )


def _cloud(one: Section, read_cloud: ReadCloud) -> Cloud:
    if not one.flag("use-clouds"):
        return Cloud()
    name, path = one.required("cloud"), one.required("clouds-file")
    return read_cloud(path, name)


def _names_somebody(one: Section) -> bool:
    keys = ("username", "user-id", "application-credential-id", "application-credential-name")
    return any(one.text(key) for key in keys)


def _credentials(one: Section) -> Credentials:
    domain = {"domain_id": one.text("domain-id"), "domain_name": one.text("domain-name")}

    def of(what: str, id: str | None, name: str | None) -> Named:
        own = {"domain_id": one.text(f"{what}-domain-id"), "domain_name": one.text(f"{what}-domain-name")}
        return Named(id, name, **(own if any(own.values()) else domain))

    user = of("user", one.text("user-id"), one.text("username"))
    if secret := one.text("application-credential-secret"):
        own, name = one.text("application-credential-id"), one.text("application-credential-name")
        if not own and not (name and (user.id or user.name)):
            raise one.wrong("application-credential-id", "missing", "an ID, or a name beside user-id or username")
        return ApplicationCredential(_secret(secret), own, name, user)
    if not user.id and not user.name:
        raise one.wrong("username", "missing", "username, user-id or an application credential")
    if not user.id and not (user.domain_id or user.domain_name):
        raise one.wrong("user-domain-name", "missing, and a user's name is one of its domain", "or user-domain-id")
    project = of("tenant", one.text("tenant-id"), one.text("tenant-name"))
    if not project.id and not project.name:
        raise one.wrong("tenant-id", "missing", "tenant-id or tenant-name")
    return Password(user, _secret(one.required("password")), project)


def _secret(secret: str) -> str:
    """Hidden from logs, whatever its characters: it is sent in JSON."""
    logs.hide(secret)
    return secret


def _sort_order(networking: Section) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        parts = (networking.text("address-sort-order") or "").split(",")
        return tuple(ip_network(part.strip()) for part in parts if part.strip())
    except ValueError:
        raise networking.wrong("address-sort-order", "not a list of CIDRs", "such as 10.0.0.0/8, fd00::/8") from None

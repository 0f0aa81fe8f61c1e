"""What a Service asks of AWS, whichever kind of load balancer it gets: read once, checked, and typed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import AWS_LBC_CLASS, CATALOGUE, CLASSES, non_empty
from cloud_controller.clouds.aws.attributes import pairs
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.vpc_state import Facts
from cloud_controller.load_balancers.catalogue import Settings
from cloud_controller.load_balancers.model import Ignored, Object, Owner

Kind = Literal["network", "classic"]
Port = dict[str, Any]
"""A port of a Service."""

_HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Request:
    """One Service, its annotations parsed, and what surrounds it."""

    service: Object
    kind: Kind
    settings: Settings
    config: Config
    facts: Facts

    @property
    def spec(self) -> dict[str, Any]:
        """The Service's spec."""
        return cast("dict[str, Any]", self.service["spec"])

    @property
    def ports(self) -> Sequence[Port]:
        """The Service's ports."""
        return self.spec.get("ports") or ()

    @property
    def owner(self) -> Owner:
        """Whose all of it is."""
        metadata = self.service["metadata"]
        return Owner(self.config.cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])

    @property
    def is_local(self) -> bool:
        """Whether nodes send on to their own pods alone."""
        return is_local(self.spec)

    @property
    def proxy_protocol(self) -> bool:
        """Whether targets are told clients' addresses by it."""
        return self.settings.text("proxy_protocol") == "*"

    def words(self, argument: str) -> tuple[str, ...]:
        """What is given of an entry of type `tuple`."""
        given = self.settings.given.get(argument)
        return given if isinstance(given, tuple) else ()

    def pairs(self, argument: str) -> dict[str, str]:
        """The same where the words are key=value."""
        return pairs(field(argument), self.words(argument))

    def ignored(self, argument: str, reason: str) -> Iterator[Ignored]:
        """The annotation, or all of its family, as ignored for this reason, if it is given."""
        members = (f"{argument}.{suffix}" for suffix in self.settings.members(argument))
        for each in (argument, *members):
            if each in self.settings.given:
                yield Ignored(field(each), self.settings.given[each], reason)


def field(argument: str) -> str:
    """How the annotation of an argument is named in errors."""
    return f"annotation {CATALOGUE.of_argument(argument).name}"


def request(service: Object, config: Config, facts: Facts) -> Request:
    """The Service as read. Raises InvalidConfiguration for what no kind of load balancer can do."""
    spec = service["spec"]
    found = Request(
        service, kind_of(service), CATALOGUE.parse(non_empty(service["metadata"].get("annotations"))), config, facts
    )
    if spec.get("loadBalancerIP"):
        why = f"{spec['loadBalancerIP']!r} is not supported: on AWS, annotations set a load balancer's addresses"
        allowed = f"none; use {field('eip_allocations')} or {field('private_ipv4_addresses')}"
        raise InvalidConfiguration("spec.loadBalancerIP", why, allowed)
    return found


def kind_of(service: Object) -> Kind:
    """The kind of load balancer that a Service asks for: by class, else by annotation, else classic as upstream.

    Raises InvalidConfiguration where it is none, or they contradict each other.
    """
    name = service["spec"].get("loadBalancerClass")
    annotations = non_empty(service["metadata"].get("annotations"))
    given_type = CATALOGUE.value(annotations, "type")
    by_type: Kind = "network" if given_type == "nlb" else "classic"
    if name == AWS_LBC_CLASS and given_type in (None, "nlb", "external"):
        return "network"
    by_class = "network" if name == AWS_LBC_CLASS else CLASSES.get(name)
    if by_class is None:
        return by_type
    if given_type is not None and (by_class != by_type or given_type in ("external", "nlb-ip")):
        why = f"{given_type!r} contradicts spec.loadBalancerClass {name!r}"
        raise InvalidConfiguration(field("type"), why, "no annotation: the class sets the type")
    return by_class


def is_local(spec: Mapping[str, Any]) -> bool:
    """Whether `externalTrafficPolicy` is Local."""
    return spec.get("externalTrafficPolicy") == "Local"


def port_number(text: str) -> int:
    """The port of `healthcheck-port`. Raises InvalidConfiguration for what is none."""
    if int(text) > _HIGHEST_PORT:
        raise InvalidConfiguration(
            field("healthcheck_port"), f"{text!r} is not a valid port number", f"1 to {_HIGHEST_PORT}"
        )
    return int(text)


def as_text(flag: bool) -> str:
    """A flag as AWS's attributes have it."""
    return "true" if flag else "false"

"""A Service's request for a load balancer of either kind: parsed, validated and typed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from cloud_controller.clouds.aws.annotations import AWS_LBC_CLASS, CATALOGUE, CLASSES
from cloud_controller.clouds.aws.attributes import pairs
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.config_refusals import of_config
from cloud_controller.clouds.aws.facts import Facts
from cloud_controller.load_balancers.model import Ignored, Object, Owner
from cloud_controller.load_balancers.refusals import refuse
from cloud_controller.load_balancers.settings import Settings

Kind = Literal["network", "classic"]
Port = dict[str, Any]
"""A port of a Service."""


@dataclass(frozen=True, slots=True)
class Request:
    """One Service with its parsed annotations, the cloud config and the VPC."""

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
        """The owner of the Service's resources."""
        metadata = self.service["metadata"]
        return Owner(self.config.cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])

    @property
    def proxy_protocol(self) -> bool:
        """Whether the targets receive clients' addresses by the proxy protocol."""
        return self.settings.text("proxy_protocol") == "*"

    def words(self, argument: str) -> tuple[str, ...]:
        """The value of a list annotation."""
        given = self.settings.given.get(argument)
        return given if isinstance(given, tuple) else ()

    def pairs(self, argument: str) -> dict[str, str]:
        """The value of a list annotation of key=value pairs."""
        return pairs(field(argument), self.words(argument))

    def ignored(self, argument: str, reason: str) -> Iterator[Ignored]:
        """The annotation, or all members of its family, as ignored for this reason, if set."""
        members = (f"{argument}.{suffix}" for suffix in self.settings.members(argument) if "." not in argument)
        for each in (argument, *members):
            if each in self.settings.given:
                yield Ignored(field(each), self.settings.given[each], reason)


def field(argument: str) -> str:
    """The name of an argument's annotation in errors."""
    return f"annotation {CATALOGUE.of_argument(argument).name}"


def request(service: Object, config: Config, facts: Facts) -> Request:
    """Parse the Service. Raises InvalidConfiguration for what its kind of load balancer does not support."""
    settings = CATALOGUE.parse(service["metadata"].get("annotations"))
    refuse(settings, service["spec"], (*CATALOGUE.refusals, *of_config(config)))
    return Request(service, kind_of(service), settings, config, facts)


def kind_of(service: Object) -> Kind:
    """The kind of load balancer: by class, otherwise by annotation, otherwise classic as upstream.

    Raises InvalidConfiguration if the annotation is needed and invalid.
    """
    name = service["spec"].get("loadBalancerClass")
    if name == AWS_LBC_CLASS:
        return "network"
    by_class = CLASSES.get(name)
    if by_class is not None:
        return by_class
    return "network" if CATALOGUE.value(service["metadata"].get("annotations"), "type") == "nlb" else "classic"


def as_text(flag: bool) -> str:
    """A flag as the text of an AWS attribute."""
    return "true" if flag else "false"

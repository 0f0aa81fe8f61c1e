"""What one Service asks of its NLB: the parsed annotations beside the spec. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cloud_controller.clouds.alicloud.nlb.annotations import NLB, field
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Ignored, Object, Owner
from cloud_controller.load_balancers.settings import Settings

Port = dict[str, Any]
"""An entry of `spec.ports`."""


class BuildConfig(Protocol):
    """What builds need of the cloud config."""

    @property
    def cluster_id(self) -> str: ...


class BuildFacts(Protocol):
    """What builds need to know of the cloud."""

    @property
    def vpc_id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Request:
    """A Service and its settings. Annotations that are empty count as missing."""

    service: Object
    settings: Settings
    config: BuildConfig

    @property
    def spec(self) -> Mapping[str, Any]:
        """The Service's spec."""
        spec: Mapping[str, Any] = self.service["spec"]
        return spec

    @property
    def ports(self) -> tuple[Port, ...]:
        """The Service's ports."""
        return tuple(self.spec.get("ports") or ())

    @property
    def owner(self) -> Owner:
        """The owner of what is made for the Service."""
        metadata = self.service["metadata"]
        return Owner(self.config.cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])

    def has(self, argument: str) -> bool:
        """Whether the Service sets the annotation."""
        return argument in self.settings.given

    def text(self, argument: str) -> str:
        """The value or default of an annotation that always has one."""
        return str(self.settings.text(argument))

    def on(self, argument: str) -> bool:
        """Whether an annotation of on and off is on."""
        return self.settings.text(argument) == "on"

    def words(self, argument: str) -> tuple[str, ...]:
        """The words of a list; none if it is not set."""
        found = self.settings.given.get(argument)
        return found if isinstance(found, tuple) else ()

    def pairs(self, argument: str) -> dict[str, str]:
        """The words of a list of key=value."""
        return {key: value for key, _, value in (word.partition("=") for word in self.words(argument))}

    def ignored(self, argument: str, reason: str) -> Iterator[Ignored]:
        """The annotation as one without effect, if the Service sets it."""
        if self.has(argument):
            value: Value = self.settings.given[argument]
            yield Ignored(field(argument), value, reason)


def value_of(service: Object, argument: str) -> Value | None:
    """One annotation's value or default, whatever the others are. Raises InvalidConfiguration."""
    return NLB.value(service["metadata"].get("annotations"), argument)

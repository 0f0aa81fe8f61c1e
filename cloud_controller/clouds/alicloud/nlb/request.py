"""What one Service asks of its NLB: the parsed annotations beside the spec. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cloud_controller.clouds.alicloud.annotations import CATALOGUE
from cloud_controller.clouds.alicloud.nlb.annotations import CLASSES, NLB, field
from cloud_controller.load_balancers.catalogue import Settings, Value
from cloud_controller.load_balancers.model import Ignored, Object, Owner

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
    owner: Owner

    @property
    def spec(self) -> Mapping[str, Any]:
        """The Service's spec."""
        spec: Mapping[str, Any] = self.service["spec"]
        return spec

    @property
    def ports(self) -> tuple[Port, ...]:
        """The Service's ports."""
        return tuple(self.spec.get("ports") or ())

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


def request(service: Object, config: BuildConfig) -> Request:
    """Parse the Service's annotations. Raises InvalidConfiguration."""
    metadata = service["metadata"]
    owner = Owner(config.cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])
    # With the annotations of the other kind, which are reported as having no effect.
    settings = CATALOGUE.of_class(CLASSES[0]).parse(metadata.get("annotations"))
    return Request(service, settings, owner)


def value_of(service: Object, argument: str) -> Value | None:
    """One annotation's value or default, whatever the others are. Raises InvalidConfiguration."""
    return NLB.value(service["metadata"].get("annotations"), argument)

"""What one Service asks for, read as far as its load balancer and its ports go. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cloud_controller.load_balancers.model import Object, Owner
from cloud_controller.load_balancers.settings import Settings


class Place(Protocol):
    """What of the cloud config builds depend on; `vswitch_id` is that of internal load balancers that name none."""

    @property
    def cluster_id(self) -> str: ...
    @property
    def vpc_id(self) -> str: ...
    @property
    def vswitch_id(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Request:
    """A Service with its parsed annotations."""

    service: Object
    settings: Settings
    place: Place

    @property
    def spec(self) -> Mapping[str, Any]:
        """The Service's spec."""
        return self.service["spec"]  # type: ignore[no-any-return]

    @property
    def ports(self) -> list[dict[str, Any]]:
        """The Service's ports."""
        return self.spec.get("ports") or []

    @property
    def owner(self) -> Owner:
        """The owner of what is made for the Service."""
        metadata = self.service["metadata"]
        return Owner(self.place.cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])

    @property
    def by_pod(self) -> bool:
        """Whether the backends are pods."""
        return self.settings.text("backend_type") == "eni"

    @property
    def reused(self) -> str | None:
        """The ID of the load balancer that the Service reuses."""
        return self.settings.text("id")

    def is_on(self, argument: str) -> bool:
        """Whether an annotation with the values `on` and `off` is on, by value or default."""
        return self.settings.text(argument) == "on"

    def words(self, argument: str) -> tuple[str, ...]:
        """The words of a list annotation."""
        found = self.settings.given.get(argument)
        return found if isinstance(found, tuple) else ()


def protocols(request: Request) -> dict[tuple[str, int], str]:
    """CLB's protocol of each port of the Service, by transport protocol and number."""
    found = {(port["protocol"], port["port"]): str(port["protocol"]).lower() for port in request.ports}
    for word in request.words("protocol_port"):
        name, _, number = word.partition(":")
        name = name.strip().lower()
        found["UDP" if name == "udp" else "TCP", int(number)] = name
    return found


def forwards(request: Request) -> dict[int, int]:
    """The HTTPS port to which each redirecting HTTP port sends its clients."""
    pairs = (word.partition(":") for word in request.words("forward_port"))
    return {int(source): int(target) for source, _, target in pairs}

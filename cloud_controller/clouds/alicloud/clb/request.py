"""What one Service asks for, read and checked as far as its load balancer and its ports go. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.clb.annotations import field
from cloud_controller.load_balancers.catalogue import Settings
from cloud_controller.load_balancers.model import Object, Owner

_TRANSPORT = {"tcp": "TCP", "udp": "UDP", "http": "TCP", "https": "TCP"}


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
    """CLB's protocol of each port of the Service, by transport protocol and number. Raises InvalidConfiguration."""
    found: dict[tuple[str, int], str] = {}
    for index, port in enumerate(request.ports):
        if port["protocol"] not in ("TCP", "UDP"):
            why = f"{port['protocol']!r} is not supported"
            raise InvalidConfiguration(f"spec.ports[{index}].protocol", why, "TCP, UDP")
        found[port["protocol"], port["port"]] = port["protocol"].lower()
    where, named = field("protocol_port"), set()
    for word in request.words("protocol_port"):
        name, _, number = word.partition(":")
        name = name.strip().lower()
        if name not in _TRANSPORT or not number.strip().isdecimal():
            raise InvalidConfiguration(where, f"{word!r} is not a protocol and a port", "such as https:443,http:80")
        key = (_TRANSPORT[name], int(number))
        if key not in found:
            served = ", ".join(f"{port}/{protocol}" for protocol, port in found)
            raise InvalidConfiguration(where, f"{word!r} is not a port of the Service", f"one of {served}")
        if key in named:
            raise InvalidConfiguration(where, f"port {number} appears twice", "one protocol for each port")
        named.add(key)
        found[key] = name
    return found


def forwards(request: Request, protocol_of: Mapping[tuple[str, int], str]) -> dict[int, int]:
    """The HTTPS port to which each redirecting HTTP port sends its clients. Raises InvalidConfiguration."""
    where, found = field("forward_port"), {}
    for word in request.words("forward_port"):
        source, _, target = (each.strip() for each in word.partition(":"))
        if not source.isdecimal() or not target.isdecimal():
            raise InvalidConfiguration(where, f"{word!r} is not two ports", "HTTP-PORT:HTTPS-PORT, such as 80:443")
        if protocol_of.get(("TCP", int(source))) != "http":
            allowed = f"an HTTP port; annotation protocol-port makes it one (http:{source})"
            raise InvalidConfiguration(where, f"port {source} is not an HTTP port of the Service", allowed)
        # On a reused load balancer, another Service may serve it.
        if not request.reused and protocol_of.get(("TCP", int(target))) != "https":
            allowed = f"an HTTPS port; annotation protocol-port makes it one (https:{target})"
            raise InvalidConfiguration(where, f"port {target} is not an HTTPS port of the Service", allowed)
        if int(source) in found:
            raise InvalidConfiguration(where, f"port {source} appears twice", "one target for each port")
        found[int(source)] = int(target)
    return found

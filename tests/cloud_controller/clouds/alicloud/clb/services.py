"""Services of CLB, built without a cloud."""

from __future__ import annotations

from typing import Any, NamedTuple

from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.clouds.alicloud.clb.annotations import CLB
from cloud_controller.clouds.alicloud.clb.build import build
from cloud_controller.clouds.alicloud.clb.request import Request
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Built, Listener
from tests.cloud_controller.load_balancing import port, service


class Place(NamedTuple):
    """What builds need of a cloud config."""

    cluster_id: str = "c-1"
    vpc_id: str = "vpc-1"
    vswitch_id: str | None = "vsw-k"


PLACE = Place()
NODES = Backends(
    tuple(NodeBackend(f"n{each}", f"i-{each}", f"i-{each}", labels={"pool": "ab"[each // 3]}) for each in (1, 2, 3))
)


def prefixed(given: dict[str, str]) -> dict[str, str]:
    """The annotations with these names after the prefix; names with a slash are whole."""
    return {name if "/" in name else PREFIX + name: text for name, text in given.items()}


def request(given: dict[str, str] | None = None, *ports: dict[str, Any], **spec: Any) -> Request:
    """A Service with these annotations; without ports, for port 80, and with HTTPS for port 443 too."""
    given = given or {}
    wanted = given.get("protocol-port", "")
    usual = [port(number) for number in (80, 443) if str(number) in wanted] or [port()]
    found: Object = service(prefixed(given), *ports or usual, **spec)
    return Request(found, CLB.parse(found["metadata"]["annotations"]), PLACE)


def built(
    given: dict[str, str] | None = None, *ports: dict[str, Any], backends: Backends = NODES, **spec: Any
) -> Built:
    """What such a Service becomes."""
    return build(request(given, *ports, **spec), backends)


def listener(found: Built, number: int = 80) -> Listener:
    """The listener of a port."""
    return next(each for each in found.model.listeners if each.port == number)


def effect(found: Built, sets: str, number: int = 80) -> Value | None:
    """What the model has in a field, such as `listener.scheduler` or `bandwidth`."""
    scope, _, name = sets.rpartition(".")
    return (listener(found, number) if scope else found.model).attributes.get(name)

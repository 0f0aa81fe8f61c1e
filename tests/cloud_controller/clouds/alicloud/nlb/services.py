"""Services with an NLB, their backends and what builds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.clouds.alicloud.annotations import CATALOGUE
from cloud_controller.clouds.alicloud.nlb.build import build
from cloud_controller.clouds.alicloud.nlb.request import Request
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from cloud_controller.load_balancers.model import Built

ZONE_H, ZONE_K = "cn-hangzhou-h", "cn-hangzhou-k"
ZONES = f"{ZONE_K}:vsw-k,{ZONE_H}:vsw-h"
ENI = "service.beta.kubernetes.io/backend-type"


@dataclass(frozen=True)
class Config:
    cluster_id: str = "c1"


@dataclass(frozen=True)
class Facts:
    vpc_id: str = "vpc-1"


def port(number: int = 80, protocol: str = "TCP", **more: Any) -> dict[str, Any]:
    return {
        "name": f"p{number}-{protocol.lower()}",
        "port": number,
        "targetPort": 8080,
        "nodePort": 30000 + number % 2000,
        "protocol": protocol,
        **more,
    }


def service(*ports: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A Service with these annotations, by their names without the prefix, or in full."""
    given = {"zone-maps": ZONES, **(annotations or {})}
    return {
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "uid-1",
            "annotations": {name if "/" in name else f"{PREFIX}{name}": text for name, text in given.items()},
        },
        "spec": {"loadBalancerClass": "alibabacloud.com/nlb", "ports": list(ports or (port(),)), **spec},
    }


def nodes(*names: str) -> tuple[NodeBackend, ...]:
    return tuple(NodeBackend(name, f"i-{name}", f"10.0.0.{index}") for index, name in enumerate(names, start=1))


def backends(*names: str, pods: dict[str, str] | None = None, pod_port: int = 8080) -> Backends:
    """Nodes (`n1` and `n2` unless named), and pods by address with their node, which serve every TCP port."""
    slices = [
        {
            "addressType": "IPv4",
            "ports": [{"name": "p80-tcp", "port": pod_port, "protocol": "TCP"}],
            "endpoints": [
                {"addresses": [address], "conditions": {"ready": True}, "nodeName": node}
                for address, node in (pods or {}).items()
            ],
        }
    ]
    return Backends(nodes(*(names or ("n1", "n2"))), tuple(slices))


def built(
    *ports: dict[str, Any], annotations: dict[str, str] | None = None, on: Backends | None = None, **spec: Any
) -> Built:
    given = service(*ports, annotations=annotations, **spec)
    settings = CATALOGUE.of_class("alibabacloud.com/nlb").parse(given["metadata"]["annotations"])
    return build(Request(given, settings, Config()), on or backends(), Facts())

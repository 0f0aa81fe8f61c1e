"""Creates entries of both kinds' catalogues with what nearly all have in common."""

from __future__ import annotations

from typing import Any

from cloud_controller.load_balancers.catalogue import Annotation, Mutability, Value

PREFIX = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-"
LEGACY_PREFIX = "service.beta.kubernetes.io/alicloud-loadbalancer-"
BACKEND_TYPE = "service.beta.kubernetes.io/backend-type"

LISTS = "ccm-behaviour, section 5.2"
PEER = "cloud-provider-alibaba-cloud"

ON_OFF = ("on", "off")

RESERVED_TAGS = (
    *("aliyun", "acs:", "ack.aliyun.com", "ack.alibabacloud.com", "k8s.aliyun.com"),
    *("kubernetes.do.not.delete", "kubernetes.reused.by.user", "service.k8s.alibaba/", "ingress.k8s.alibaba/"),
)
"""The prefixes of tags' keys that the cloud, ACK, its controller for Services or the one for Ingresses uses."""

_TYPES: dict[str, type[Value]] = {"text": str, "number": int, "flag": bool, "list": tuple}


def entry(name: str, kind: str, sets: str, description: str, **more: Any) -> Annotation:
    """An entry under the prefix, with its older name. `kind`: text, number, flag or list."""
    return Annotation(
        **{
            "name": f"{PREFIX}{name}",
            "argument": name.replace("-", "_"),
            "aliases": (f"{LEGACY_PREFIX}{name}",),
            "sets": sets,
            "type": _TYPES[kind],
            "description": description,
            "applies_to": "the load balancer",
            "mutability": Mutability.IN_PLACE,
            "since": "0.1",
            **more,
        }
    )


READINESS_GATE = entry(
    "readiness-gate",
    "flag",
    "pods.readiness_gate",
    "Whether new pods of the Service get a readiness gate, which opens once they are healthy in the load balancer"
    " (docs/readiness-gates.md). `cloud-controller/readiness-gate` takes precedence.",
    applies_to="new pods, where the admission policy is installed",
    default=True,
    source="requirements of Alibaba Cloud's CCM, 002, section 4.7",
)

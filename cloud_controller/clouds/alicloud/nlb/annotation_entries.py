"""Creates entries of NLB's catalogue with what nearly all have in common."""

from __future__ import annotations

from typing import Any

from cloud_controller.load_balancers.catalogue import Annotation, Mutability, Value

PREFIX = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-"
LEGACY_PREFIX = "service.beta.kubernetes.io/alicloud-loadbalancer-"

SEED = "requirements 002, section 4.4.1"
LISTS = "ccm-behaviour, section 5.2"
PEER = "cloud-provider-alibaba-cloud"
API = "NLB API of 2022-04-30"

ON_OFF = ("on", "off")

_TYPES: dict[str, type[Value]] = {"text": str, "number": int, "flag": bool, "list": tuple}


def entry(name: str, kind: str, sets: str, description: str, **more: Any) -> Annotation:
    """An entry under the prefix, with its legacy name. `kind`: text, number, flag or list."""
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
            "source": f"{SEED}; {PEER}",
            **more,
        }
    )

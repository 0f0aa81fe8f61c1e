"""Creates entries of AWS's catalogue with what nearly all have in common; the load-balancer classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from cloud_controller.load_balancers.catalogue import Annotation, Mutability, Value

PREFIX = "service.beta.kubernetes.io/aws-load-balancer-"

CLASSES: Mapping[str, Literal["network", "classic"]] = {
    "cloud-controller/nlb": "network",
    "cloud-controller/classic": "classic",
}
"""The values of `spec.loadBalancerClass` that this controller serves, with the kind of load balancer of each."""

AWS_LBC_CLASS = "service.k8s.aws/nlb"
"""The class of the AWS Load Balancer Controller, served here only with `ServeNLBClass` in the cloud config."""

NETWORK = "network load balancers"
CLASSIC = "classic load balancers"
BOTH = "network and classic load balancers"

TRUE_WORDS = ("True", "TRUE", "t", "T", "1")
FALSE_WORDS = ("False", "FALSE", "f", "F", "0")
"""The values that upstream's parser accepts besides `true` and `false`."""

_TYPES: dict[str, type[Value]] = {"text": str, "number": int, "flag": bool, "list": tuple}


def entry(
    name: str,
    kind: str,
    sets: str,
    description: str,
    *,
    applies_to: str = BOTH,
    upstream: str | None = None,
    controller: str | None = None,
    mutability: Mutability = Mutability.IN_PLACE,
    **more: Any,
) -> Annotation:
    """An entry whose name begins with the prefix. `kind`: text, number, flag or list.

    `upstream` and `controller` are the oldest versions of cloud-provider-aws and of the AWS Load Balancer Controller
    known to honour it (`2`: some 2.x; `since 1.35`: 1.34 does not).
    """
    if kind == "flag":
        more = {"true_words": TRUE_WORDS, "false_words": FALSE_WORDS, **more}
    others = (("cloud-provider-aws", upstream), ("the AWS Load Balancer Controller", controller))
    by = [f"{who} {_seen_in(version)}" for who, version in others if version]
    return Annotation(
        **{
            "name": f"{PREFIX}{name}",
            "argument": name.replace("-", "_"),
            "sets": sets,
            "type": _TYPES[kind],
            "description": description,
            "applies_to": applies_to,
            "mutability": mutability,
            "since": "0.1",
            "source": "cloud-provider-aws, service controller" if upstream else _CONTROLLER,
            "honoured_by": "; ".join(by) or None,
            **more,
        }
    )


def _seen_in(version: str) -> str:
    return f"since {version} or earlier" if re.fullmatch(r"\d+\.\d+", version) else version


_CONTROLLER = "AWS Load Balancer Controller, annotations of Services"

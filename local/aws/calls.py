"""What a request calls: one operation of one service, named in one place. Pure.

moto looks for an operation and its parameters in more places than AWS does: in query, body and headers, one after the
other. Whoever named another operation in each would be judged by one and be given the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from local.aws.signatures import Refused, Request

EKS = "eks"
SERVICES = frozenset({"autoscaling", "ec2", EKS, "elasticloadbalancing", "iam", "ssm", "sts"})
"""As signatures and policies name them. What others would make moto would forget with its process."""

_READS = re.compile(r"(Describe|Get|List|Lookup|Simulate|Decode)")


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `service` is empty where the request is not signed, `action` at EKS, whose calls are paths."""

    service: str
    action: str
    only_reads: bool
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Those of form and query; there are none where the body is JSON."""

    def __str__(self) -> str:
        return f"{self.service}:{self.action}"


def speaks_json(request: Request) -> bool:
    """Whether the caller, whatever he calls, reads JSON and not XML."""
    is_form = "x-www-form-urlencoded" in request.headers.get("content-type", "")
    return not is_form and "Action=" not in request.query


def call_of(request: Request, service: str) -> Call:
    """What a request calls whose signature is for this service (empty: it has none). Raises Refused."""
    if service and service not in SERVICES:
        raise Refused("InvalidAction", f"this simulated AWS has no {service}, but {', '.join(sorted(SERVICES))}")
    if service == EKS:
        return Call(service, "", request.method == "GET")
    if request.query and request.body:
        raise Refused("MalformedQueryString", "parameters stand in the query or in the body, and here in both")
    pairs = parse_qsl(request.query or request.body.decode(errors="replace"), keep_blank_values=True)
    parameters = dict(reversed(pairs))  # of what is given twice moto takes the first
    target = request.headers.get("x-amz-target", "").rpartition(".")[2]
    named = [value for name, value in [*pairs, ("Action", target)] if name == "Action" and value]
    if len(named) != 1:
        raise Refused("MissingAction", f"a request names one operation, and this one {len(named)}")
    return Call(service, named[0], bool(_READS.match(named[0])), parameters)

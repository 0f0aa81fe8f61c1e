"""Identifies a request's call: one operation of one service, named in one place. Pure.

moto looks for an operation and its parameters in more places than AWS does: in query, body and headers, one after the
other. A request with different operations in them would be authorized for one and run another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from local.aws.signatures import Refused
from local.http_messages import Request

EKS = "eks"
SERVICES = frozenset({"autoscaling", "ec2", EKS, "elasticloadbalancing", "iam", "servicequotas", "ssm", "sts"})
"""As signatures and policies name them. Quotas are constants; state of others would be lost with moto's process."""

_READS = re.compile(r"(Describe|Get|List|Lookup|Simulate|Decode)")


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `service` is empty where the request is not signed, `action` at EKS, whose calls are paths."""

    service: str
    action: str
    only_reads: bool
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Those of form and query; none if the body is JSON."""

    def __str__(self) -> str:
        return f"{self.service}:{self.action}"


def speaks_json(request: Request) -> bool:
    """Whether the client, whatever it calls, reads JSON and not XML."""
    is_form = "x-www-form-urlencoded" in request.headers.get("content-type", "")
    return not is_form and "Action=" not in request.query


def call_of(request: Request, service: str) -> Call:
    """The call of a request that is signed for this service (empty: unsigned). Raises Refused."""
    if service and service not in SERVICES:
        raise Refused("InvalidAction", f"service {service!r} is not one of {', '.join(sorted(SERVICES))}")
    if service == EKS:
        return Call(service, "", request.method == "GET")
    if request.query and request.body:
        raise Refused("MalformedQueryString", "parameters must be either in the query or in the body, not in both")
    pairs = parse_qsl(request.query or request.body.decode(errors="replace"), keep_blank_values=True)
    parameters = dict(reversed(pairs))  # moto takes the first of duplicates
    target = request.headers.get("x-amz-target", "").rpartition(".")[2]
    named = [value for name, value in [*pairs, ("Action", target)] if name == "Action" and value]
    if len(named) != 1:
        raise Refused("MissingAction", f"a request must name one operation; this one names {len(named)}")
    return Call(service, named[0], bool(_READS.match(named[0])), parameters)

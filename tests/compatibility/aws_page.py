"""The page that tells in what this controller differs from the Go controller on AWS, made of the table that tests hold.

    python -m tests.compatibility.aws_page

writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.compatibility import aws_recorded
from tests.compatibility.aws_differences import DIFFERENCES
from tests.compatibility.aws_services import CASES, PREFIX, Case

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility" / "aws.md"

_HEAD = """\
<!-- Made by `python -m tests.compatibility.aws_page`; change tests/compatibility/aws_differences.py, not this page. -->
# AWS: what differs from the Go controller

{count} Services were given to both: to the Go controller (`cloud-provider-aws` {version}, which clusters on AWS run
today) and to this one, each on a real API server and moto {moto}. What each left in the account was compared field by
field: attributes of the load balancer, listeners, target groups and their attributes, health checks, registered
targets, rules of security groups (of the load balancer and of the nodes), tags, the Service's status, and what is
left after its deletion; and what becomes of a node, labels and addresses. `make test` compares
them again; the Go controller's results are recorded in `tests/compatibility/aws_peer.json` (`python -m
tests.compatibility.aws_run` records them anew).

Everything that is not in this table is the same. Names of load balancers and target groups are not compared: each
controller, and AWS, makes up its own.

| Services | field | the Go controller | this one | why |
|---|---|---|---|---|
"""

_BEYOND = """
## What moto can't show
- Which elastic and which private addresses a Network Load Balancer has: moto takes them and tells nothing of them. Unit
  tests hold that they are asked for.
- That a security group is in use for minutes after its load balancer went, that traffic flows, and health.
- That a classic load balancer must be in a subnet at any time, and in one a zone: moto takes any order. Unit tests hold
  ours.
- Where moto answers otherwise than AWS does, so that a controller would pay for it, a proxy mends the answer for both
  (`benchmarks/aws/moto_gaps.py`): a TCP listener has no TLS policy, a classic load balancer has a health check from the
  start, and attributes that every load balancer has are there.

## The Services
| Service | annotations, with the prefix `{prefix}` | ports and more | the Go controller |
|---|---|---|---|
"""


def page(recorded: Mapping[str, Any]) -> str:
    """The page's text."""
    versions = recorded["versions"]
    head = _HEAD.format(count=len(CASES), version=versions["cloud-provider-aws"], moto=versions["moto"])
    differences = "".join(
        f"| {_code(each.services)} | {_code(each.fields)} | {each.peer} | {each.ours} | {each.reason} |\n"
        for each in DIFFERENCES
    )
    services = "".join(_service(case, recorded["results"][case.name]) for case in CASES)
    return head + differences + _BEYOND.format(prefix=PREFIX) + services


def _service(case: Case, result: Mapping[str, Any]) -> str:
    said = {**case.annotations, **case.others}
    annotations = "<br>".join(f"`{key}: {value}`" for key, value in said.items()) or "-"
    ports = ", ".join(f"{port.number}/{port.protocol}" for port in case.ports)
    more = "".join(f", `{key}: {json.dumps(value)}`" for key, value in case.spec.items())
    outcome = "refuses it" if result["refused"] else "serves it" if result["load_balancers"] else "leaves it alone"
    return f"| `{case.name}` | {annotations} | {ports}{more} | {outcome} |\n"


def _code(patterns: str) -> str:
    return ", ".join(f"`{pattern.removeprefix('load_balancers/0/')}`" for pattern in patterns.split("|"))


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(aws_recorded.read()))

"""The status of a site of AWS as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.status_text import render_site, section, state

Json = Mapping[str, Any]


def render(status: Json, outputs: Json) -> str:
    """The status that `AwsSite.status` returns, and the stack's outputs, as text."""
    title = "load balancers (simulated: they forward nothing)"
    return render_site(
        "AWS (moto, a simulator)",
        status,
        outputs,
        section("clusters", [_cluster(each) for each in status.get("clusters", [])]),
        section("machines", [_machine(each) for each in status.get("machines", [])]),
        section(title, [_balancer(each) for each in status.get("load_balancers", [])]),
    )


def _cluster(cluster: Json) -> list[str]:
    return [cluster["name"], state(cluster), cluster["version"], cluster["endpoint"] or "-"]


def _machine(machine: Json) -> list[str]:
    return [machine["node_name"], state(machine), *(machine[key] or "-" for key in ("name", "id", "zone", "type"))]


def _balancer(balancer: Json) -> list[str]:
    listeners = ", ".join(balancer["listeners"]) or "no listener"
    return [balancer["name"], balancer["type"], balancer["address"], listeners, f"{balancer['targets']} targets"]

"""Renders the status of an AWS site for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.status_text import section

Json = Mapping[str, Any]


def render(status: Json, outputs: Json) -> str:
    """The status of `AwsSite.status` and the stack's outputs, as text."""
    if "endpoint" not in status:
        return f"There is no site in {status['state_folder']}."
    lines = [f"AWS (moto, a simulator)   {status['endpoint']}  {'answers' if status['up'] else 'does not answer'}"]
    lines += section("clusters", [_cluster(each) for each in status.get("clusters", [])])
    lines += section("machines", [_machine(each) for each in status.get("machines", [])])
    title = "load balancers (simulated: they forward nothing)"
    lines += section(title, [_balancer(each) for each in status.get("load_balancers", [])])
    lines += section("processes", [[each["name"], f"pid {each['pid']}", each["log"]] for each in status["processes"]])
    lines += section("stack outputs", [[name, str(value)] for name, value in outputs.items()])
    return "\n".join(lines)


def _cluster(cluster: Json) -> list[str]:
    return [cluster["name"], _state(cluster), cluster["version"], cluster["endpoint"] or "-"]


def _machine(machine: Json) -> list[str]:
    return [machine["node_name"], _state(machine), *(machine[key] or "-" for key in ("name", "id", "zone", "type"))]


def _balancer(balancer: Json) -> list[str]:
    listeners = ", ".join(balancer["listeners"]) or "no listener"
    return [balancer["name"], balancer["type"], balancer["address"], listeners, f"{balancer['targets']} targets"]


def _state(thing: Json) -> str:
    return f"{thing['state']}: {thing['state_reason']}" if thing["state_reason"] else str(thing["state"])

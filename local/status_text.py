"""A site's status for a person to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]


def render(status: Json, outputs: Json) -> str:
    """The status that `Site.status` gives, and the stack's outputs, as text."""
    if not status["up"] and "endpoint" not in status:
        return f"There is no site in {status['state_folder']}."
    lines = [f"mycloud   {status['endpoint']}  {'answers' if status['up'] else 'does not answer'}"]
    lines += _section("clusters", (_cluster(each) for each in status.get("clusters", [])))
    lines += _section("machines", (_machine(each) for each in status.get("machines", [])))
    lines += _section("load balancers", (_balancer(each) for each in status.get("load_balancers", [])))
    lines += _section("processes", (_row([each["name"]], f"pid {each['pid']}") for each in status["processes"]))
    lines += _section("stack outputs", (_row([name], _shown(value)) for name, value in outputs.items()))
    return "\n".join(lines)


def addresses(balancers: Sequence[Json]) -> list[str]:
    """A command for each listener that shows it at work."""
    commands = []
    for balancer in balancers:
        for listener in balancer["listeners"]:
            address, port = balancer["address"], listener["port"]
            if listener["protocol"] == "UDP":
                commands.append(f"echo hello | nc -u -w 1 {address} {port}")
            else:
                commands.append(f"curl http://{address}:{port}/")
    return commands


def _cluster(cluster: Json) -> str:
    return _row([cluster["name"], _state(cluster), cluster["id"]], cluster["version"], cluster["endpoint"])


def _machine(machine: Json) -> str:
    what = [machine["name"], _state(machine), machine["id"]]
    return _row(what, machine["private_ips"][0], machine["zone"], machine["type"], machine["role"])


def _balancer(balancer: Json) -> str:
    listeners = ", ".join(f"{each['protocol']} {each['port']}" for each in balancer["listeners"]) or "no listener"
    return _row([balancer["name"], _state(balancer), balancer["id"]], balancer["address"], listeners, _health(balancer))


def _health(balancer: Json) -> str:
    backends = balancer.get("backends")
    if backends is None:
        return "health unknown"
    return f"{sum(each['healthy'] is True for each in backends)} of {len(backends)} backends healthy"


def _state(thing: Json) -> str:
    return f"{thing['state']}: {thing['state_reason']}" if thing["state_reason"] else str(thing["state"])


def _section(title: str, rows: Iterable[str]) -> list[str]:
    listed = list(rows)
    return ["", title, *listed] if listed else []


def _row(columns: Sequence[str], *rest: str | None) -> str:
    return "  " + "  ".join([*(f"{each:<16}" for each in columns), *(each for each in rest if each)])


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else str(value)

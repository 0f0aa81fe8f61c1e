"""A site's status for a person to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

# By what is surely there: of the programs that can send a packet, a fresh machine may have none.
_UDP = (
    """python3 -c 'from socket import *; s = socket(type=SOCK_DGRAM); s.settimeout(5); """
    """s.connect(("{address}", {port})); s.send(b"hello"); print(s.recv(2048).decode())'"""
)


def render(status: Json, outputs: Json) -> str:
    """The status that `Site.status` gives, and the stack's outputs, as text."""
    if not status["up"] and "endpoint" not in status:
        return f"There is no site in {status['state_folder']}."
    lines = [f"mycloud   {status['endpoint']}  {'answers' if status['up'] else 'does not answer'}"]
    lines += section("clusters", [_cluster(each) for each in status.get("clusters", [])])
    lines += _machines(status.get("machines", []))
    lines += section("load balancers", [_balancer(each) for each in status.get("load_balancers", [])])
    names = {each["id"]: each["name"] for each in status.get("machines", [])}
    lines += section("volumes", [_volume(each, names) for each in status.get("volumes", [])])
    lines += section("processes", [[each["name"], f"pid {each['pid']}", each["log"]] for each in status["processes"]])
    lines += section("stack outputs", [[name, str(value)] for name, value in outputs.items()])
    return "\n".join(lines)


def addresses(balancers: Sequence[Json], *, proxied: bool = False) -> dict[str, list[str]]:
    """By load balancer's name a command for each of its listeners that shows it at work.

    `proxied`: curl would take a proxy of the environment's.
    """
    curl = "curl --noproxy '*'" if proxied else "curl"
    commands = {}
    for balancer in balancers:
        address = balancer["address"]
        commands[balancer["name"]] = [
            _UDP.format(address=address, port=listener["port"])
            if listener["protocol"] == "UDP"
            else f"{curl} http://{address}:{listener['port']}/"
            for listener in balancer["listeners"]
        ]
    return {name: shown for name, shown in commands.items() if shown}


def _cluster(cluster: Json) -> list[str]:
    return [cluster["name"], _state(cluster), cluster["id"], cluster["version"] or "-", cluster["endpoint"] or "-"]


def _machines(machines: Sequence[Json]) -> list[str]:
    """Those row by row that are real and there; of the others there may be thousands."""
    there = [each for each in machines if each["state"] != "terminated"]
    real = sorted((each for each in there if not each["simulated"]), key=lambda each: str(each["name"]))
    terminated = sum(each["state"] == "terminated" and not each["simulated"] for each in machines)
    beside = {"simulated": len(there) - len(real), "terminated": terminated}
    counts = " and ".join(f"{count} {what}" for what, count in beside.items() if count)
    return section(f"machines, beside {counts}" if counts else "machines", [_machine(each) for each in real])


def _machine(machine: Json) -> list[str]:
    address = machine["private_ips"][0]
    return [machine["name"], _state(machine), machine["id"], address, *(machine[k] for k in ("zone", "type", "role"))]


def _balancer(balancer: Json) -> list[str]:
    listeners = ", ".join(f"{each['protocol']} {each['port']}" for each in balancer["listeners"]) or "no listener"
    what = [balancer["name"], _state(balancer), balancer["id"]]
    return [*what, balancer["address"], listeners, _health(balancer)]


def _volume(volume: Json, machines: Mapping[str, str]) -> list[str]:
    attachment = volume["attachment"]
    where = "not attached"
    if attachment:
        machine = attachment["machine_id"]
        where = f"{attachment['state']}: {machines.get(machine, machine)}"
    return [volume["name"], _state(volume), volume["id"], f"{volume['size_gib']} GiB", volume["zone"], where]


def _health(balancer: Json) -> str:
    backends = balancer.get("backends")
    if backends is None:
        return "health unknown"
    unchecked = sum(map(is_unchecked, backends))
    checked = len(backends) - unchecked
    if unchecked and not checked:
        return f"{unchecked} backends unchecked"
    found = f"{sum(each['healthy'] is True for each in backends)} of {checked} backends healthy"
    return f"{found}, {unchecked} unchecked" if unchecked else found


def is_unchecked(backend: Json) -> bool:
    """Whether no health check says anything of the backend: it has traffic whatever its state."""
    return backend.get("checked") is False  # An API that was started by older code does not say it.


def _state(thing: Json) -> str:
    return f"{thing['state']}: {thing['state_reason']}" if thing["state_reason"] else str(thing["state"])


def section(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """A title and its rows, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return ["", title, *(f"  {line.rstrip()}" for line in aligned)] if rows else []

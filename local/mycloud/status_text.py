"""The status of mycloud's site as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from local.status_text import render_site, section, state

Json = Mapping[str, Any]

# With python3, which is surely there; a fresh machine may have no other program that sends UDP.
_UDP = (
    """python3 -c 'from socket import *; s = socket(type=SOCK_DGRAM); s.settimeout(5); """
    """s.connect(("{address}", {port})); s.send(b"hello"); print(s.recv(2048).decode())'"""
)


def render(status: Json, outputs: Json) -> str:
    """The status that `Site.status` returns, and the stack's outputs, as text."""
    names = {each["id"]: each["name"] for each in status.get("machines", [])}
    return render_site(
        "mycloud",
        status,
        outputs,
        section("clusters", [_cluster(each) for each in status.get("clusters", [])]),
        _machines(status.get("machines", [])),
        section("load balancers", [_balancer(each) for each in status.get("load_balancers", [])]),
        section("volumes", [_volume(each, names) for each in status.get("volumes", [])]),
    )


def addresses(balancers: Sequence[Json], *, proxied: bool = False) -> dict[str, list[str]]:
    """By load balancer's name, a command that calls each of its listeners.

    `proxied`: the environment names a proxy, which curl must not use.
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
    return [cluster["name"], state(cluster), cluster["id"], cluster["version"] or "-", cluster["endpoint"] or "-"]


def _machines(machines: Sequence[Json]) -> list[str]:
    """A row for each real machine that exists; there may be thousands of others."""
    there = [each for each in machines if each["state"] != "terminated"]
    real = sorted((each for each in there if not each["simulated"]), key=lambda each: str(each["name"]))
    terminated = sum(each["state"] == "terminated" and not each["simulated"] for each in machines)
    beside = {"simulated": len(there) - len(real), "terminated": terminated}
    counts = " and ".join(f"{count} {what}" for what, count in beside.items() if count)
    return section(f"machines, beside {counts}" if counts else "machines", [_machine(each) for each in real])


def _machine(machine: Json) -> list[str]:
    address = machine["private_ips"][0]
    return [machine["name"], state(machine), machine["id"], address, *(machine[k] for k in ("zone", "type", "role"))]


def _balancer(balancer: Json) -> list[str]:
    listeners = ", ".join(f"{each['protocol']} {each['port']}" for each in balancer["listeners"]) or "no listener"
    what = [balancer["name"], state(balancer), balancer["id"]]
    return [*what, balancer["address"], listeners, _health(balancer)]


def _volume(volume: Json, machines: Mapping[str, str]) -> list[str]:
    attachment = volume["attachment"]
    where = "not attached"
    if attachment:
        machine = attachment["machine_id"]
        where = f"{attachment['state']}: {machines.get(machine, machine)}"
    return [volume["name"], state(volume), volume["id"], f"{volume['size_gib']} GiB", volume["zone"], where]


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
    """Whether no health check covers the backend: it gets traffic whatever its state."""
    return backend.get("checked") is False  # Missing in the answer of an API that runs older code.

"""How a part of a load balancer differs from what the controller writes of every such part. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

View = Mapping[str, Any]


def is_failed(part: View) -> bool:
    """Whether it is in ERROR: Octavia could not apply its last change."""
    return bool(part.get("provisioning_status") == "ERROR")


def enabled(part: View, balancer: View) -> str | bool:
    """Whether it is switched on, or another word if it must be sent again. A load balancer in ERROR accepts nothing."""
    if is_failed(part) and not is_failed(balancer):
        return "in ERROR"
    return bool(part.get("admin_state_up", True))


def of_member(member: View, balancer: View, subnet: str) -> list[str]:
    """The faults of a member, each as words; `subnet`: the one in which all members of the pool should be, or ""."""
    found = []
    if (on := enabled(member, balancer)) is not True:
        found.append(on or "switched off")
    if member.get("backup"):
        found.append("backup")
    if address := member.get("monitor_address"):
        found.append(f"checked at {address}")
    if subnet and member.get("subnet_id") != subnet:
        found.append(f"in subnet {member.get('subnet_id')}")
    return found

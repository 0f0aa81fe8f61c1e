"""What the value of an option may be, on the command line and in a config file: one function a type of value.

Each takes the text and raises argparse.ArgumentTypeError that says what is allowed. The text itself is not quoted: in a
file, a secret may stand at a wrong place.
"""

from __future__ import annotations

import argparse
import re
from ipaddress import ip_address

from cloud_controller.load_balancers.nameable import Nameable

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SHORTEST, _LONGEST = 0.01, 8760 * 3600.0
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def boolean(text: str) -> bool:
    """`true` or `false`."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError("neither true nor false")
    return text.lower() == "true"


def duration(text: str) -> float:
    """Seconds of a time such as `500ms` or `1h30m`, from 10ms to a year."""
    seconds = duration_or_none(text)
    if seconds == 0:
        raise argparse.ArgumentTypeError("not above zero")
    return seconds


def duration_or_none(text: str) -> float:
    """Seconds of a time such as `500ms` or `1h30m`, from 10ms to a year; `0` stands for none."""
    if text == "0":
        return 0.0
    if not re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h))+", text):
        raise argparse.ArgumentTypeError("not a valid duration (for example 500ms, 10s, 5m or 1h30m)")
    seconds = sum(float(n) * _UNITS[unit] for n, _, unit in re.findall(r"(\d+(\.\d+)?)(ms|s|m|h)", text))
    # Shorter ones would keep a processor busy; longer ones no clock can wait for.
    if seconds and not _SHORTEST <= seconds <= _LONGEST:
        raise argparse.ArgumentTypeError("not from 10ms to 8760h")
    return seconds


def address(text: str) -> str:
    """An IP address."""
    try:
        return str(ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError("not an IP address") from None


def object_name(text: str) -> str:
    """The name of a Kubernetes object (a DNS subdomain, RFC 1123)."""
    if len(text) > 253 or not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            "not the name of an object: lower-case letters, digits, '-' and '.', at most 253"
        )
    return text


def namespace(text: str) -> str:
    """The name of a namespace (a DNS label)."""
    if len(text) > 63 or "." in object_name(text):
        raise argparse.ArgumentTypeError("not a namespace: lower-case letters, digits and '-', at most 63")
    return text


def count(text: str) -> int:
    """An integer from 1 to 1000."""
    return _integer(text, 1, 1000)


def count_or_none(text: str) -> int:
    """An integer from 0 to 1000."""
    return _integer(text, 0, 1000)


def port(text: str) -> int:
    """A port, or 0."""
    return _integer(text, 0, 65535)


def verbosity(text: str) -> int:
    """klog's levels: 0 to 10."""
    return _integer(text, 0, 10)


def rate(text: str) -> float:
    """A number, such as 20 or 0.5."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text):
        raise argparse.ArgumentTypeError("not a number such as 20 or 0.5")
    return float(text)


def words(text: str) -> list[str]:
    """Words with commas between them."""
    return [word.strip() for word in text.split(",")]


def nameable(text: str) -> list[str]:
    """What annotations may name (see `Nameable`): entries with commas between them."""
    entries = words(text)
    try:
        Nameable.parse(entries)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return entries


def paths(text: str) -> list[str]:
    """Paths of HTTP with commas between them; nothing for none.

    Each stands for what is below it as well (`/healthz` as `/healthz/*`), and `/*` for every path.
    """
    found = [word for word in words(text) if word]
    for path in found:
        # `/` would open what is below it, which is everything: nobody shall say that by mistake.
        if not re.fullmatch(r"(/[\w.~-]+)+(/\*)?|/\*", path, re.ASCII):
            raise argparse.ArgumentTypeError("not a path such as /healthz, /healthz/* or /*")
    return found


def _integer(text: str, low: int, high: int) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"not an integer from {low} to {high}")
    return int(text)

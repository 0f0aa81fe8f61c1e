"""Parses option values of the command line and the config file, one function per type.

Each raises argparse.ArgumentTypeError with what is allowed. Errors do not quote the value: in a config file, a secret
may have ended up under the wrong key.
"""

from __future__ import annotations

import argparse
import re
from datetime import date
from ipaddress import ip_address

from cloud_controller.load_balancers.nameable import Nameable

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SHORTEST, _LONGEST = 0.01, 8760 * 3600.0
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def boolean(text: str) -> bool:
    """Parse `true` or `false`."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError("not a boolean (true or false)")
    return text.lower() == "true"


def duration(text: str) -> float:
    """Parse a duration such as `500ms` or `1h30m`, from 10ms to a year, into seconds."""
    seconds = duration_or_none(text)
    if seconds == 0:
        raise argparse.ArgumentTypeError("must be greater than zero")
    return seconds


def duration_or_none(text: str) -> float:
    """Like `duration`, but `0` is allowed and stands for none."""
    if text == "0":
        return 0.0
    if not re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h))+", text):
        raise argparse.ArgumentTypeError("not a valid duration (for example 500ms, 10s, 5m or 1h30m)")
    seconds = sum(float(n) * _UNITS[unit] for n, _, unit in re.findall(r"(\d+(\.\d+)?)(ms|s|m|h)", text))
    # A shorter period would spin; a longer one overflows the operating system's timers.
    if seconds and not _SHORTEST <= seconds <= _LONGEST:
        raise argparse.ArgumentTypeError("not between 10ms and 8760h")
    return seconds


def day(text: str) -> str:
    """Check a day, YYYY-MM-DD."""
    try:
        if date.fromisoformat(text).isoformat() == text:
            return text
    except ValueError:
        pass
    raise argparse.ArgumentTypeError("not a day (YYYY-MM-DD)")


def address(text: str) -> str:
    """Parse an IP address."""
    try:
        return str(ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError("not an IP address") from None


def object_name(text: str) -> str:
    """Check the name of a Kubernetes object (a DNS subdomain, RFC 1123)."""
    if len(text) > 253 or not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            "not a valid object name (lower-case letters, digits, '-' and '.', at most 253 characters)"
        )
    return text


def namespace(text: str) -> str:
    """Check the name of a namespace (a DNS label)."""
    if len(text) > 63 or "." in object_name(text):
        raise argparse.ArgumentTypeError("not a namespace (lower-case letters, digits and '-', at most 63 characters)")
    return text


def namespaced_name(text: str) -> str:
    """Check NAMESPACE/NAME of a Kubernetes object."""
    namespace_, slash, of_object = text.partition("/")
    if not slash:
        raise argparse.ArgumentTypeError("not NAMESPACE/NAME")
    return f"{namespace(namespace_)}/{object_name(of_object)}"


def count(text: str) -> int:
    """Parse an integer from 1 to 1000."""
    return _integer(text, 1, 1000)


def count_or_none(text: str) -> int:
    """Parse an integer from 0 to 1000."""
    return _integer(text, 0, 1000)


def port(text: str) -> int:
    """Parse a port, or 0."""
    return _integer(text, 0, 65535)


def verbosity(text: str) -> int:
    """Parse a klog verbosity: 0 to 10."""
    return _integer(text, 0, 10)


def rate(text: str) -> float:
    """Parse a number such as 20 or 0.5."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text):
        raise argparse.ArgumentTypeError("not a number such as 20 or 0.5")
    return float(text)


def words(text: str) -> list[str]:
    """Split a comma-separated list."""
    return [word.strip() for word in text.split(",")]


def nameable(text: str) -> list[str]:
    """Split a comma-separated list of `Nameable` entries, and check them."""
    entries = words(text)
    try:
        Nameable.parse(entries)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return entries


def paths(text: str) -> list[str]:
    """Split a comma-separated list of HTTP paths, which may be empty.

    A path includes everything below it (`/healthz` means `/healthz/*`), and `/*` means every path.
    """
    found = [word for word in words(text) if word]
    for path in found:
        # `/` would include everything below it. Opening every path must be explicit.
        if not re.fullmatch(r"(/[\w.~-]+)+(/\*)?|/\*", path, re.ASCII):
            raise argparse.ArgumentTypeError("not a path such as /healthz, /healthz/* or /*")
    return found


def _integer(text: str, low: int, high: int) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"not an integer from {low} to {high}")
    return int(text)

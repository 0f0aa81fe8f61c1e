"""Translates OpenStack's HTTP statuses, and the names that Neutron and Octavia give their errors, into typed errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from cloud_controller.cloud_errors import (
    AccessDenied,
    CloudError,
    Conflict,
    InvalidConfiguration,
    NotFound,
    Overtaken,
    QuotaExceeded,
)
from cloud_controller.clouds.common.error_codes import ErrorCodes, typed
from cloud_controller.retries import RETRY_AFTER

CODES: Final = ErrorCodes(
    # Octavia answers 403, Neutron 409, or 400 for routes, and Nova 403 or 413.
    (
        QuotaExceeded,
        "400 RoutesExhausted:.*|4[01][39] .*(?i:quota).*",
        "4[01][39] .*(?i:limit( is)?( was)?( has been)? exceeded).*",
        "4[01][39] .*(?i:limit( is)?( was)?( has been)? reached).*",
        "4[01][39] .*(?i:maximum number of .* exceeded).*|4[01][39] .*(?i:maximum number of .* reached).*",
    ),
    (InvalidConfiguration, "400 .*|406 .*|413 .*|415 .*|422 .*"),
    (AccessDenied, "401 .*|403 .*"),
    (NotFound, "404 .*|410 .*"),
    (Conflict, "409 .*"),
    (Overtaken, "412 .*"),
)
"""By the status and the error's name and text: `409 IpAddressInUse: Unable to …`."""


class Unauthorized(AccessDenied):
    """Keystone or a service rejected the token or the credentials, whatever the operation."""


def of_status(status: int, data: bytes, what: str, retry_after: float = RETRY_AFTER) -> CloudError:
    """The typed error for an answer to `what` (`POST network floatingips`) with this status and body."""
    kind, message = _told(data)
    where = f"OpenStack: {what}"
    words = f"{kind}: {message}" if kind else message or f"HTTP {status}"
    text = f"{where}: {words}"
    if status == 401:
        return Unauthorized(text)
    if status in (404, 410) and not (kind or message):
        # Not the service's own words: something before it answered. Whoever reads "not found" deletes a node.
        return CloudError(f"{where}: HTTP {status} without the service's error; a proxy before it may have answered")
    if status < 400:
        # A redirect, or a list of versions: the endpoint is not the API's.
        return CloudError(f"{where}: HTTP {status}; check the service's endpoint in the catalog")
    code = f"{status} {' '.join(words.split())}"
    return typed(CODES.kind(code, status), text, InvalidConfiguration(where, words), retry_after)


def _told(data: bytes) -> tuple[str, str]:
    """The error's name and its text; each service has its own form."""
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        return "", ""
    if not isinstance(content, Mapping):
        return "", ""
    if "faultstring" in content:  # Octavia
        return "", str(content["faultstring"] or "")
    inner: Any = content.get("NeutronError")
    if isinstance(inner, Mapping):
        return str(inner.get("type") or ""), str(inner.get("message") or "")
    # Keystone: {"error": {...}}; Nova: {"itemNotFound": {...}}.
    inner = next((each for each in content.values() if isinstance(each, Mapping) and "message" in each), None)
    return "", str(inner["message"] or "") if inner is not None else ""

"""Signs requests with Alibaba Cloud's signature version 3 (ACS3-HMAC-SHA256). Pure.

A test compares it with the official SDK's. Dates and nonces are headers, which the caller makes.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import quote

ALGORITHM = "ACS3-HMAC-SHA256"


def canonical_query(query: Mapping[str, str]) -> str:
    """The query as it is signed, which is also how it is sent."""
    return "&".join(f"{_encoded(key)}={_encoded(value)}" for key, value in sorted(query.items()))


def digest(body: bytes) -> str:
    """The hash of the body, which is also the header `x-acs-content-sha256`."""
    return hashlib.sha256(body).hexdigest()


def authorization(
    method: str,
    query: str,
    headers: Mapping[str, str],
    body_digest: str,
    access_key_id: str,
    access_key_secret: str,
    path: str = "/",
) -> str:
    """The header `Authorization` of a request to this path with this canonical query. All of `headers` are signed."""
    lines = sorted((name.lower(), value.strip()) for name, value in headers.items())
    signed = ";".join(name for name, _ in lines)
    canonical = "".join(f"{name}:{value}\n" for name, value in lines)
    request = f"{method}\n{path}\n{query}\n{canonical}\n{signed}\n{body_digest}"
    text = f"{ALGORITHM}\n{digest(request.encode())}"
    signature = hmac.new(access_key_secret.encode(), text.encode(), hashlib.sha256).hexdigest()
    return f"{ALGORITHM} Credential={access_key_id},SignedHeaders={signed},Signature={signature}"


def _encoded(text: str) -> str:
    return quote(text, safe="~")

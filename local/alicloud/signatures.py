"""Verifies who sent a request: ACS3-HMAC-SHA256 in headers, or the older RPC style, HMAC-SHA1 in the query. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from local.http_messages import Request
from local.standin.refusals import Refusal

ACS3 = "ACS3-HMAC-SHA256"
CLOCK_SKEW = timedelta(minutes=15)
_AUTHORIZATION = re.compile(
    rf"{ACS3} +Credential=(?P<key>[^,\s]+), *SignedHeaders=(?P<headers>[^,\s]+), *Signature=(?P<signature>[0-9a-f]+)"
)

Pairs = list[tuple[str, str]]
"""Decoded names and values, as they came."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a request says of its signer."""

    access_key: str
    security_token: str | None
    nonce: str
    time: str
    value: str
    signed_headers: tuple[str, ...] = ()
    """Of ACS3; empty in the RPC style."""


def signature_of(request: Request, query: Pairs, form: Pairs) -> Signature | None:
    """The request's signature; None if it has none."""
    if authorization := request.headers.get("authorization"):
        match = _AUTHORIZATION.fullmatch(authorization.strip())
        if match is None:
            raise Refusal(400, "IncompleteSignature", f"The request signature does not conform to {ACS3}.")
        return Signature(
            match["key"],
            request.headers.get("x-acs-security-token"),
            request.headers.get("x-acs-signature-nonce", ""),
            request.headers.get("x-acs-date", ""),
            match["signature"],
            tuple(match["headers"].split(";")),
        )
    given = dict(form) | dict(query)
    if "Signature" not in given:
        return None
    if given.get("SignatureMethod") != "HMAC-SHA1" or given.get("SignatureVersion") != "1.0":
        raise Refusal(400, "InvalidParameter.SignatureMethod", "The signature must be HMAC-SHA1 of version 1.0.")
    return Signature(
        given.get("AccessKeyId", ""),
        given.get("SecurityToken"),
        given.get("SignatureNonce", ""),
        given.get("Timestamp", ""),
        given["Signature"],
    )


def verify(
    request: Request, query: Pairs, form: Pairs, signature: Signature, secret: str, now: datetime | None = None
) -> None:
    """Raise Refusal unless the holder of `secret` signed exactly this request, a moment ago."""
    if abs((now or datetime.now(UTC)) - _time(signature.time)) > CLOCK_SKEW:
        raise Refusal(400, "InvalidTimeStamp.Expired", "Specified time stamp or date value is expired.")
    if not signature.nonce:
        raise Refusal(400, "MissingSignatureNonce", "SignatureNonce is mandatory for this action.")
    if signature.signed_headers:
        expected = acs3(request, query, signature.signed_headers, secret)
    else:
        pairs = [(name, value) for name, value in [*query, *form] if name != "Signature"]
        expected = rpc(request.method, pairs, secret)
    if not hmac.compare_digest(expected, signature.value):
        raise Refusal(
            400, "SignatureDoesNotMatch", "Specified signature is not matched with our calculation. Check the secret."
        )


def acs3(request: Request, query: Pairs, signed_headers: Iterable[str], secret: str) -> str:
    """The signature of a request in the newer style."""
    names = list(signed_headers)
    digest = hashlib.sha256(request.body).hexdigest()
    sent = {name for name in request.headers if name == "host" or name.startswith("x-acs-")}
    if unsigned := sorted(sent - set(names)):
        raise Refusal(400, "IncompleteSignature", f"The header {unsigned[0]} is not signed.")
    if request.headers.get("x-acs-content-sha256") != digest:
        raise Refusal(400, "InvalidContentSha256", "x-acs-content-sha256 is not the SHA-256 of the body.")
    canonical = "\n".join(
        (
            request.method,
            request.path,
            _canonical(query),
            *(f"{name}:{request.headers.get(name, '').strip()}" for name in names),
            "",
            ";".join(names),
            digest,
        )
    )
    to_sign = f"{ACS3}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    return hmac.digest(secret.encode(), to_sign.encode(), "sha256").hex()


def rpc(method: str, pairs: Pairs, secret: str) -> str:
    """The signature of a request in the older style; `pairs` are all of query and form."""
    to_sign = f"{method}&%2F&{_encoded(_canonical(pairs))}"
    return base64.b64encode(hmac.digest(f"{secret}&".encode(), to_sign.encode(), "sha1")).decode()


def _canonical(pairs: Pairs) -> str:
    return "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in sorted(pairs))


def _encoded(text: str) -> str:
    return quote(text, safe="~")


def _time(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise Refusal(
            400, "InvalidTimeStamp.Format", "Specified time stamp or date value is not well formatted."
        ) from None

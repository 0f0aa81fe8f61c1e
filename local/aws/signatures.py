"""Verifies a request's signer: AWS Signature Version 4, in the Authorization header or in the query (presigned). Pure.

moto accepts any key that a request names. The site's API does not: a signature identifies a cluster's administrator.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote, unquote

from local.http_messages import Request

ALGORITHM = "AWS4-HMAC-SHA256"
CLOCK_SKEW = timedelta(minutes=15)
_HEADER = re.compile(
    rf"{ALGORITHM} Credential=(?P<credential>[^,\s]+),\s*"
    r"SignedHeaders=(?P<headers>[^,\s]+),\s*Signature=(?P<signature>\w+)"
)


class Refused(Exception):
    """The request fails a check; `code` is AWS's."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True)
class Signature:
    """A request's statement about its signer."""

    access_key: str
    scope: str
    """DATE/REGION/SERVICE/aws4_request"""

    signed_headers: tuple[str, ...]
    time: str
    value: str
    expires: timedelta | None = None
    """How long a presigned request is valid; None if the header has the signature."""

    @property
    def service(self) -> str:
        """The service that it is for."""
        return self.scope.split("/")[2]

    def as_header(self) -> str:
        """The equivalent Authorization header."""
        credential, headers = f"{self.access_key}/{self.scope}", ";".join(self.signed_headers)
        return f"{ALGORITHM} Credential={credential}, SignedHeaders={headers}, Signature={self.value}"


def signature_of(request: Request) -> Signature | None:
    """The request's signature; None if it has none. Raises Refused for a malformed one."""
    query = dict(parse_qsl(request.query, keep_blank_values=True))
    if header := request.headers.get("authorization"):
        match = _HEADER.fullmatch(header.strip())
        if match is None:
            raise Refused("IncompleteSignature", "the Authorization header is not a signature of version 4")
        credential, headers, value = match["credential"], match["headers"], match["signature"]
        time, expires = request.headers.get("x-amz-date", ""), None
    elif query.get("X-Amz-Algorithm") == ALGORITHM:
        credential, headers = query.get("X-Amz-Credential", ""), query.get("X-Amz-SignedHeaders", "")
        value, time = query.get("X-Amz-Signature", ""), query.get("X-Amz-Date", "")
        if not re.fullmatch(r"\d{1,6}", query.get("X-Amz-Expires", "")):
            raise Refused("IncompleteSignature", "a presigned request needs X-Amz-Expires, in seconds")
        expires = timedelta(seconds=int(query["X-Amz-Expires"]))
    else:
        return None
    access_key, _, scope = credential.partition("/")
    if not access_key or scope.count("/") != 3:
        raise Refused("IncompleteSignature", "the credential's scope is not DATE/REGION/SERVICE/aws4_request")
    return Signature(access_key, scope, tuple(headers.split(";")), time, value, expires)


def verify(
    request: Request, signature: Signature, secret_of: Callable[[str], str | None], now: datetime | None = None
) -> None:
    """Raise Refused unless the holder of a known key recently signed exactly this request."""
    secret = secret_of(signature.access_key)
    if secret is None:
        raise Refused("InvalidClientTokenId", "The security token included in the request is invalid.")
    signed = _time(signature.time)
    age = (now or datetime.now(UTC)) - signed
    if age < -CLOCK_SKEW or age > _lifetime(signature):
        raise Refused("RequestExpired", f"the request was signed at {signed}, too long ago or in the future")
    if "host" not in signature.signed_headers:
        raise Refused("IncompleteSignature", "the header host must be signed")
    if not hmac.compare_digest(_expected(request, signature, secret), signature.value):
        raise Refused("SignatureDoesNotMatch", "The request signature we calculated does not match the one given.")


def _lifetime(signature: Signature) -> timedelta:
    """STS accepts presigned requests for a quarter of an hour, whatever they state: tokens of EKS state a minute."""
    return CLOCK_SKEW if signature.service == "sts" or signature.expires is None else signature.expires


def _time(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise Refused("IncompleteSignature", "the request has no X-Amz-Date") from None


def _expected(request: Request, signature: Signature, secret: str) -> str:
    canonical = "\n".join(
        (
            request.method,
            # Every service except S3 encodes the path once more than it is sent.
            quote(request.path, safe="/~"),
            _canonical_query(request.query),
            *(f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in signature.signed_headers),
            "",
            ";".join(signature.signed_headers),
            # Of the received body, not the one in x-amz-content-sha256: otherwise it could differ from what was signed.
            hashlib.sha256(request.body).hexdigest(),
        )
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in signature.scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    to_sign = f"{ALGORITHM}\n{signature.time}\n{signature.scope}\n{digest}"
    return hmac.digest(key, to_sign.encode(), "sha256").hex()


def _canonical_query(query: str) -> str:
    pairs = (part.partition("=")[::2] for part in query.split("&") if part)
    encoded = ((_encoded(name), _encoded(value)) for name, value in pairs)
    return "&".join(f"{name}={value}" for name, value in sorted(encoded) if name != "X-Amz-Signature")


def _encoded(text: str) -> str:
    return quote(unquote(text), safe="-_.~")

"""Parses a token of EKS: `k8s-aws-v1.` and, in base64, a presigned request to STS that identifies its signer. Pure.

The API server passes it to the webhook, which sends that same request to STS. So it must lead only to the site's own
STS, or the sender of a token would choose the webhook's request.
"""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import parse_qsl, urlsplit

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
MOST_SECONDS = 900
_PARAMETERS = frozenset(
    {"Action", "Version", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires"}
    | {"X-Amz-Security-Token", "X-Amz-Signature", "X-Amz-SignedHeaders"}
)


class NotAToken(Exception):
    """The token is not one of EKS, or requests more than its signer's identity."""


def identity_url(token: str, endpoint: str) -> str:
    """The URL that identifies the signer, at the STS `endpoint`. Raises NotAToken."""
    if not token.startswith(PREFIX):
        raise NotAToken(f"a token of EKS starts with {PREFIX}")
    encoded = token.removeprefix(PREFIX)
    try:
        url = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise NotAToken("the token is not base64") from None
    parts = urlsplit(url)
    if f"{parts.scheme}://{parts.netloc}" != endpoint.rstrip("/") or parts.path not in ("", "/") or parts.fragment:
        raise NotAToken("the token leads elsewhere than this site's STS")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = dict(pairs)
    if len(query) != len(pairs) or not query.keys() <= _PARAMETERS:
        raise NotAToken("the token's request has parameters of other requests")
    if query.get("Action") != "GetCallerIdentity":
        raise NotAToken("the token's request is not GetCallerIdentity")
    if CLUSTER_HEADER not in query.get("X-Amz-SignedHeaders", "").split(";"):
        raise NotAToken("the token does not name its cluster")
    expires = query.get("X-Amz-Expires", "")
    if not re.fullmatch(r"\d{1,4}", expires) or int(expires) > MOST_SECONDS:
        raise NotAToken(f"the token is valid for more than {MOST_SECONDS} seconds")
    return url


def principal(arn: str) -> str:
    """The identity with the access rights: a session has those of the role that it assumed."""
    match = re.fullmatch(r"arn:([^:]+):sts::(\d+):assumed-role/([^/]+)/.*", arn)
    return f"arn:{match[1]}:iam::{match[2]}:role/{match[3]}" if match else arn

"""What a token of EKS is: `k8s-aws-v1.` and, in base64, a presigned request to STS that tells who signed it. Pure.

The API server asks the webhook, the webhook asks STS with that very request. So a token must lead to the site's own
STS and to nothing else, or whoever sends one chooses what is asked.
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
    """A token that is none of EKS, or one that asks for more than who signed it."""


def identity_url(token: str, endpoint: str) -> str:
    """The URL that tells who made the token, at the STS `endpoint`. Raises NotAToken."""
    if not token.startswith(PREFIX):
        raise NotAToken(f"a token of EKS begins with {PREFIX}")
    encoded = token.removeprefix(PREFIX)
    try:
        url = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise NotAToken("the token is not base64") from None
    parts = urlsplit(url)
    if f"{parts.scheme}://{parts.netloc}" != endpoint.rstrip("/") or parts.path not in ("", "/") or parts.fragment:
        raise NotAToken("the token leads to another place than this site's STS")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = dict(pairs)
    if len(query) != len(pairs) or not query.keys() <= _PARAMETERS:
        raise NotAToken("the token's request has parameters of other requests")
    if query.get("Action") != "GetCallerIdentity":
        raise NotAToken("the token's request does not ask who signed it")
    if CLUSTER_HEADER not in query.get("X-Amz-SignedHeaders", "").split(";"):
        raise NotAToken("the token does not say for which cluster it is")
    expires = query.get("X-Amz-Expires", "")
    if not re.fullmatch(r"\d{1,4}", expires) or int(expires) > MOST_SECONDS:
        raise NotAToken(f"the token may be used longer than {MOST_SECONDS} seconds")
    return url


def principal(arn: str) -> str:
    """Whose access counts for a caller: a session counts as the role that it assumed."""
    match = re.fullmatch(r"arn:([^:]+):sts::(\d+):assumed-role/([^/]+)/.*", arn)
    return f"arn:{match[1]}:iam::{match[2]}:role/{match[3]}" if match else arn

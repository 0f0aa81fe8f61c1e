"""Calls the stand-in in this process, signed as a client of the RPC style signs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from local.alicloud.account import ACCESS_KEY, SECRET, as_text
from local.alicloud.cloud import AliCloud
from local.alicloud.products import BY_VERSION
from local.alicloud.signatures import rpc
from local.http_messages import Request

_numbers = itertools.count()


class Refused(Exception):
    """The cloud's refusal."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code


class Lost(Exception):
    """The answer was lost."""


def call(cloud: AliCloud, operation: str, /, **parameters: Any) -> dict[str, Any]:
    """The answer to `product.Action`; raises Refused or Lost."""
    answer = cloud.answer(request(cloud, operation, parameters))
    if answer.is_lost:
        raise Lost(operation)
    content: dict[str, Any] = json.loads(answer.body)
    if answer.status != 200:
        raise Refused(answer.status, content["Code"], content["Message"])
    return content


def request(
    cloud: AliCloud,
    operation: str,
    parameters: Mapping[str, Any],
    key: str = ACCESS_KEY,
    secret: str = SECRET,
    **more: str,
) -> Request:
    """A signed request of the RPC style; `more` are common parameters."""
    product, _, action = operation.partition(".")
    (version,) = (version for version, each in BY_VERSION.items() if each.name == product)
    pairs = {
        "Action": action,
        "Version": version,
        "Format": "JSON",
        "Timestamp": as_text(cloud.world.clock()),
        "SignatureMethod": "HMAC-SHA1",
        "SignatureVersion": "1.0",
        "SignatureNonce": f"nonce-{next(_numbers)}",
        "AccessKeyId": key,
        **flat("", parameters),
    }
    if product not in ("sts", "nlb", "quotas") and "RegionId" not in pairs:
        pairs["RegionId"] = cloud.world.region
    pairs |= more
    pairs["Signature"] = rpc("POST", list(pairs.items()), secret)
    return Request("POST", "/", urlencode(pairs), {"host": "test"})


def flat(name: str, value: Any) -> dict[str, str]:
    """`{"Tag": [{"Key": "a"}]}` as `{"Tag.1.Key": "a"}`."""
    if isinstance(value, Mapping):
        members = value.items()
    elif isinstance(value, list):
        members = {str(number): each for number, each in enumerate(value, 1)}.items()
    else:
        return {name: str(value).lower() if isinstance(value, bool) else str(value)}
    return {key: text for part, each in members for key, text in flat(f"{name}.{part}" if name else part, each).items()}

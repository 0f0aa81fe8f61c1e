"""The client of Alibaba Cloud's RPC APIs: signed requests, typed errors, retries and pages, without the SDK.

Why without: docs/decisions/0019. Requests and answers are plain dicts with the names on the wire. A client may be
shared by threads.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import urlencode

import orjson
import urllib3

from cloud_controller import retries
from cloud_controller.cloud import CallObserver, CloudError, Fence, Unavailable
from cloud_controller.clouds.alicloud.errors import Refusal, names_credentials, translated
from cloud_controller.clouds.alicloud.names import VERSIONS
from cloud_controller.clouds.alicloud.requests import is_read, query_and_form
from cloud_controller.clouds.alicloud.signature import authorization, canonical_query, digest
from cloud_controller.clouds.common.http import Http, observed
from cloud_controller.clouds.common.rate_limiter import RateLimiter
from cloud_controller.fence import unfenced
from cloud_controller.retries import RETRY_AFTER, RetryPolicy

_CALL_DEADLINE = 20.0
"""Seconds after which a call is no longer retried: the controller has other objects to reconcile."""
_TIMEOUT = 15.0
_THROTTLED_ATTEMPTS = 20
"""Throttled calls are repeated every second, until the deadline: one that gives up fails the read of all."""


class Key(Protocol):
    """An access key; `session_token` is set for one of a role."""

    @property
    def id(self) -> str: ...
    @property
    def secret(self) -> str: ...
    @property
    def session_token(self) -> str | None: ...


class Credentials(Protocol):
    """Where the client gets its key from; safe to use from several threads."""

    def key(self) -> Key | None:
        """The key to sign with now; None: send the request unsigned. Raises CloudError."""
        ...

    def refused(self, key: Key) -> bool:
        """The API refused this key: whether `key` may return another one now."""
        ...


class Client:
    """Alibaba Cloud's APIs for one account and region.

    Raises the errors of `cloud_controller.cloud`; `errors.error_code(error)` is the API's own code. Calls that were
    throttled or never reached the API are retried; calls that may have had an effect only if they read, have a
    `ClientToken` or are `repeatable`. When the API throttles an action, all its callers slow down. A refused key is
    replaced once.
    """

    def __init__(
        self,
        region: str,
        endpoint: Callable[[str], str],
        credentials: Credentials,
        *,
        timeout: float = _TIMEOUT,
        deadline: float = _CALL_DEADLINE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`endpoint`: the URL of a product's API (`https://HOST`). `deadline`: for a call with all its retries."""
        self.region = region
        self.observer: CallObserver | None = None
        """Called after every attempt; see `Cloud.observe_calls`."""
        self.fence: Fence = unfenced
        """Called before every attempt that may change something; see `Cloud.fence_writes`."""
        self._endpoint = endpoint
        self._credentials = credentials
        self._policy = RetryPolicy(deadline=deadline, throttled_attempts=_THROTTLED_ATTEMPTS)
        self._sleep = sleep
        self._http = Http("Alibaba Cloud", timeout=timeout)
        self._rate_limiters: dict[tuple[str, str], RateLimiter] = {}

    def __repr__(self) -> str:
        return f"Client(region={self.region!r})"

    def call(
        self, product: str, action: str, parameters: Mapping[str, Any], *, repeatable: bool = False
    ) -> dict[str, Any]:
        """The answer of `action` (`DescribeInstances`) of `product` (see `names.VERSIONS`).

        None values are left out, lists and dicts flattened (`Tag.1.Key`); the region is added. `repeatable`: whether a
        write without a `ClientToken` may be sent again after a lost answer.
        """
        limiter = self._rate_limiters.setdefault((product, action), RateLimiter())
        end = time.monotonic() + self._policy.deadline

        def attempt(_: int) -> dict[str, Any]:
            with limiter.paced(what=f"Alibaba Cloud: {product} {action}", until=end, sleep=self._sleep):
                return self._with_key(product, action, parameters)

        safe = repeatable or is_read(action) or bool(parameters.get("ClientToken"))
        return retries.call(attempt, self._policy, idempotent=safe, sleep=self._sleep)

    def pages(self, product: str, action: str, parameters: Mapping[str, Any], path: str) -> Iterator[dict[str, Any]]:
        """The objects at `path` (`LoadBalancers.LoadBalancer`) on every page; each page is one call.

        Follows `NextToken`, or page numbers if the answer has them and no token was asked for (`MaxResults`).
        """
        asked = dict(parameters)
        by_token = bool({"MaxResults", "MaxResult"} & asked.keys())
        seen = 0
        while True:
            answer = self.call(product, action, asked)
            found = _listed(answer, path, f"{product} {action}")
            yield from found
            seen += len(found)
            if token := answer.get("NextToken"):
                asked["NextToken"] = token
            elif by_token or not found or seen >= int(answer.get("TotalCount") or 0):
                return
            else:
                asked["PageNumber"] = int(answer.get("PageNumber") or 1) + 1

    def read(
        self, endpoint: str, version: str, action: str, path: str = "/", query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The answer of a reading action of an API that the controllers do not call, such as KMS or ACK's."""
        key, target = self._credentials.key(), canonical_query(query or {})
        headers = _headers(endpoint.partition("://")[2], version, action, b"", key)
        if key is not None:
            body_digest = headers["x-acs-content-sha256"]
            headers["Authorization"] = authorization("GET", target, headers, body_digest, key.id, key.secret, path)
        where = f"{path}?{target}" if target else path
        return _decoded(self._http.send("GET", endpoint, where, what=action, headers=headers, fence=unfenced), action)

    def _with_key(self, product: str, action: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        key = self._credentials.key()
        try:
            return self._send(product, action, parameters, key)
        except CloudError as error:
            if key is None or not names_credentials(error) or not self._credentials.refused(key):
                raise
        return self._send(product, action, parameters, self._credentials.key())

    def _send(self, product: str, action: str, parameters: Mapping[str, Any], key: Key | None) -> dict[str, Any]:
        endpoint, what = self._endpoint(product), f"{product} {action}"
        query, form = query_and_form(product, action, parameters, self.region)
        if key is None:
            query["Format"] = "json"  # Unsigned calls are answered in XML otherwise.
        target, body = canonical_query(query), urlencode(form).encode()
        headers = _headers(endpoint.partition("://")[2], VERSIONS[product], action, body, key)
        if key is not None:
            signature = authorization("POST", target, headers, headers["x-acs-content-sha256"], key.id, key.secret)
            headers["Authorization"] = signature
        fence = unfenced if is_read(action) or product == "sts" else self.fence
        where = f"/?{target}" if target else "/"
        with observed(self.observer, what):
            answer = self._http.send("POST", endpoint, where, what=what, headers=headers, body=body, fence=fence)
            return _decoded(answer, what)


def _headers(host: str, version: str, action: str, body: bytes, key: Key | None) -> dict[str, str]:
    """All but the signature. Each attempt has its own nonce: the API refuses one that it has seen."""
    headers = {
        "Host": host,
        "x-acs-version": version,
        "x-acs-action": action,
        "x-acs-date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "x-acs-signature-nonce": uuid.uuid4().hex,
        "x-acs-content-sha256": digest(body),
        "Accept": "application/json",
    }
    if body:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    if key is not None and key.session_token:
        headers["x-acs-accesskey-id"] = key.id
        headers["x-acs-security-token"] = key.session_token
    return headers


def _decoded(answer: urllib3.BaseHTTPResponse, what: str) -> dict[str, Any]:
    try:
        content = orjson.loads(answer.data)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        # A proxy or a failing server sent a page of its own: the call's effect is unknown.
        raise Unavailable(f"Alibaba Cloud: {what}: the response (HTTP {answer.status}) is not from the API")
    if answer.status < 300:
        return content

    def text(name: str) -> str:
        return str(content.get(name) or content.get(name[0].lower() + name[1:]) or "")

    refusal = Refusal(text("Code"), text("Message"), answer.status, text("RequestId"))
    raise translated(refusal, what, _retry_after(answer.headers.get("x-acs-retry-after"))) from refusal


def _retry_after(header: str | None) -> float:
    """The seconds of the header, which counts milliseconds (as the SDK reads it)."""
    return int(header) / 1000 if header and header.isdecimal() and header != "0" else RETRY_AFTER


def _listed(answer: Mapping[str, Any], path: str, what: str) -> list[dict[str, Any]]:
    """The list in an answer. Raises Unavailable for one without it, unless it counts none: that is no empty list."""
    found: Any = answer
    for name in path.split("."):
        found = (found or {}).get(name)
    if found is None and answer.get("TotalCount") != 0:
        raise Unavailable(f"Alibaba Cloud: {what}: the response has no {path}")
    return found or []

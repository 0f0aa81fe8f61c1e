"""The client of mycloud's HTTP API, with typed errors, retries and paging.

The contract is `docs/mycloud-api.md`. Objects are plain JSON. The token is sent with every request and appears
nowhere else: not in `repr`, errors or logs. A client may be shared by threads.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import orjson
import urllib3

from cloud_controller import retries
from cloud_controller.cloud import (
    AccessDenied,
    CallObserver,
    CloudError,
    Conflict,
    Fence,
    InvalidConfiguration,
    NotFound,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.clouds.common.error_codes import ErrorCodes, typed
from cloud_controller.clouds.common.gcfg import is_url
from cloud_controller.clouds.common.http import Http, observed
from cloud_controller.clouds.common.sendable import sendable
from cloud_controller.fence import unfenced
from cloud_controller.retries import RETRY_AFTER, RetryPolicy, retry_after

Object = dict[str, Any]
S = TypeVar("S")

PAGE = 100
"""The API's largest page and largest batch of IDs."""

_IDEMPOTENT = frozenset({"GET", "PUT", "DELETE"})
_READING = frozenset({"access:check"})
"""POST operations that change nothing."""
CODES = ErrorCodes(
    (InvalidConfiguration, "InvalidParameter"),
    (AccessDenied, "Unauthorized|PermissionDenied"),
    (QuotaExceeded, "QuotaExceeded"),
    (NotFound, "NotFound"),
    (Conflict, "Conflict|IdempotencyConflict"),
    (Throttled, "Throttled"),
    (Unavailable, "Unavailable"),
)
_COLLECTION = re.compile("[a-z_]+")


class Client:
    """The API of one account of mycloud.

    `timeout` (seconds) is for one attempt, `deadline` (seconds) for a call with all its retries, `page` is the
    number of objects in one page of a list. Every method raises the errors of `cloud_controller.cloud`. Calls that
    were throttled or never reached the API are retried; calls that may have had an effect (connection lost, 503)
    only if repeating them is safe: GET, PUT, DELETE, a POST with a `client_token`, or one with `idempotent=True`. If
    the API rejects the token, `refresh_token` is called once; if it returns another token, the call is repeated with
    that.
    """

    def __init__(
        self,
        endpoint: str,
        token: str,
        *,
        timeout: float = 30.0,
        deadline: float = 60.0,
        page: int = PAGE,
        refresh_token: Callable[[], str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.endpoint = endpoint.rstrip("/")
        if not is_url(self.endpoint):
            # Not quoted: if lines of the config were joined, it may contain the token.
            raise InvalidConfiguration("endpoint", "not a valid URL", "http://HOST:PORT or https://HOST:PORT")
        self._token = sendable("token", token)
        self._refresh_token = refresh_token
        self.observer: CallObserver | None = None
        """Called after every attempt; see `Cloud.observe_calls`."""
        self.fence: Fence = unfenced
        """Called before every attempt that may change something; see `Cloud.fence_writes`."""
        self._page = page
        self._policy = RetryPolicy(deadline=deadline)
        self._sleep = sleep
        self._http = Http("mycloud", timeout=timeout)

    def __repr__(self) -> str:
        return f"Client({self.endpoint!r})"

    # ------------------------------------------------------------------------------------------------- collections

    def create(self, collection: str, body: Mapping[str, Any]) -> Object:
        """Create an object; its state is `creating` on return. A `client_token` in `body` makes repetition safe."""
        return self.post(collection, body)

    def get(self, collection: str, id: str) -> Object:
        """The object; raises NotFound."""
        return self.get_path(f"{collection}/{_segment(id)}")

    def list(
        self,
        collection: str,
        *,
        ids: Collection[str] | None = None,
        tags: Mapping[str, str] | None = None,
        **filters: str,
    ) -> list[Object]:
        """Every object that matches all filters, over all pages.

        `ids` restricts the list to these (missing ones are absent), 100 in a call; all `tags` must match; `filters`
        are the API's (`name`, `state`, `network_id`, …). `collection` may be a path (`route_tables/ID/routes`).
        """
        query = [*filters.items(), *(("tag", f"{key}={value}") for key, value in (tags or {}).items())]
        if ids is None:
            return [*self._pages(collection, query)]
        some = (",".join(batch) for batch in batches(sorted(set(ids)), PAGE))
        return [found for each in some for found in self._pages(collection, [*query, ("ids", each)])]

    def update(self, collection: str, id: str, changes: Mapping[str, Any]) -> Object:
        """Change fields of the object (PATCH); returns the changed object."""
        return _object(self._call("PATCH", f"{collection}/{_segment(id)}", changes))

    def delete(self, collection: str, id: str) -> None:
        """Begin to delete the object; raises NotFound if it was already deleted."""
        self.delete_path(f"{collection}/{_segment(id)}")

    def wait_for_state(self, collection: str, id: str, states: Collection[str], deadline: float) -> Object:
        """The object, once its state is one of `states`; waits at most `deadline` seconds.

        Raises CloudError with the cloud's reason if the state becomes `failed`, NotFound if the object is deleted,
        Unavailable after the deadline.
        """
        end = time.monotonic() + deadline
        for _ in self._polls(end):
            found = self.get(collection, id)
            state = found["state"]
            if state in states:
                return found
            if state == "failed":
                raise CloudError(f"{collection}/{id} failed: {found.get('state_reason') or 'the API gives no reason'}")
        raise Unavailable(f"{collection}/{id} is still {state!r} after {deadline:g} s, not {' or '.join(states)}")

    def wait_until_gone(self, collection: str, id: str, deadline: float) -> None:
        """Return once the object no longer exists; raises Unavailable after `deadline` seconds."""
        end = time.monotonic() + deadline
        for _ in self._polls(end):
            try:
                state = self.get(collection, id)["state"]
            except NotFound:
                return
        raise Unavailable(f"{collection}/{id} still exists (state {state!r}) {deadline:g} s after its deletion began")

    # ------------------------------------------------------------------------------------------------------- paths

    def get_path(self, path: str) -> Object:
        """GET of a path below /v1/."""
        return _object(self._call("GET", path))

    def post(self, path: str, body: Mapping[str, Any] | None = None, *, idempotent: bool = False) -> Object:
        """POST to a path below /v1/. `idempotent`: whether repeating it is safe."""
        return _object(self._call("POST", path, body or {}, idempotent=idempotent or "client_token" in (body or {})))

    def put(self, path: str, body: Mapping[str, Any]) -> Object:
        """PUT to a path below /v1/."""
        return _object(self._call("PUT", path, body))

    def delete_path(self, path: str) -> None:
        """DELETE of a path below /v1/; raises NotFound if it did not exist before this call."""
        self._call("DELETE", path)

    # ----------------------------------------------------------------------------------------------------- helpers

    def _polls(self, end: float) -> Iterator[None]:
        """Yields at once, then at growing intervals (0.05 s to 1 s), the last time at the deadline."""
        pause = 0.05
        while True:
            yield
            left = end - time.monotonic()
            if left <= 0:
                return
            self._sleep(min(left, pause * random.uniform(0.8, 1.2)))
            pause = min(1.0, pause * 1.5)

    def _pages(self, collection: str, query: Sequence[tuple[str, str]]) -> Iterator[Object]:
        cursor: str | None = None
        while True:
            page = [*query, ("limit", str(self._page)), *([("cursor", cursor)] if cursor else [])]
            answer = _object(self._call("GET", f"{collection}?{urlencode(page)}"))
            if not isinstance(answer.get("items"), list):
                raise CloudError(f"{self.endpoint} returned a list without items; check that the endpoint is mycloud's")
            yield from answer["items"]
            cursor = answer.get("next_cursor")
            if not cursor:
                return

    def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, idempotent: bool | None = None
    ) -> Any:
        safe = method in _IDEMPOTENT if idempotent is None else idempotent

        def attempt(number: int) -> Any:
            try:
                return self._authorised(method, path, body)
            except NotFound:
                # After a lost response, "not found" means that the first attempt deleted it.
                if method == "DELETE" and number > 0:
                    return None
                raise

        return retries.call(attempt, self._policy, idempotent=safe, sleep=self._sleep)

    def _authorised(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        token = self._token
        try:
            return self._send(method, path, body, token)
        except Unauthorized:
            if self._refresh_token is None or (fresh := sendable("token", self._refresh_token())) == token:
                raise
            self._token = fresh
        return self._send(method, path, body, fresh)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, token: str) -> Any:
        what = f"{method} /v1/{path.partition('?')[0]}"
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        data = None if body is None else orjson.dumps(body)
        if data is not None:
            headers["Content-Type"] = "application/json"
        fence = unfenced if method == "GET" or path in _READING else self.fence
        with observed(self.observer, operation_of(method, path)):
            answer = self._http.send(
                method, self.endpoint, f"/v1/{path}", what=what, headers=headers, body=data, fence=fence
            )
            if answer.status < 300:
                return self._decoded(answer.data) if answer.data else None
            raise self._error(what, answer)

    def _decoded(self, data: bytes) -> Any:
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            raise CloudError(f"{self.endpoint} returned invalid JSON; check that the endpoint is mycloud's") from None

    def _error(self, what: str, answer: urllib3.BaseHTTPResponse) -> CloudError:
        try:
            error = orjson.loads(answer.data)["error"]
            error["code"], error["message"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            error = {"code": None, "message": f"HTTP {answer.status} with an unknown error format"}
            if answer.status >= 500:
                error["code"] = "Unavailable"
        if error["code"] == "Unauthorized":
            text = f"mycloud: {self.endpoint} rejected the token: {what}: {error['message']}"
            return Unauthorized(text)
        return typed_error(error, what, pause=retry_after(answer.headers.get("Retry-After")))


class Unauthorized(AccessDenied):
    """The token is invalid or expired, whatever the operation."""


def operation_of(method: str, path: str) -> str:
    """The operation of a call without IDs: `GET machines`, `POST volumes/ID:attach`."""
    words = []
    for position, word in enumerate(path.partition("?")[0].split("/")):
        # Collections and IDs alternate; a verb after a colon belongs to the operation.
        name, colon, verb = word.partition(":")
        words.append(f"{name if position % 2 == 0 and _COLLECTION.fullmatch(name) else 'ID'}{colon}{verb}")
    return f"{method} {'/'.join(words)}"


def typed_error(error: Mapping[str, Any], what: str, *, pause: float = RETRY_AFTER) -> CloudError:
    """The typed error for the API's `{"code", "message", "field"?, "allowed"?}` in the response to `what`."""
    field = error.get("field") or what
    invalid = InvalidConfiguration(field, error["message"].removeprefix(f"{field}: "), error.get("allowed"))
    return typed(CODES.kind(str(error["code"])), f"mycloud: {what}: {error['message']}", invalid, pause)


def known_state(obj: Object, states: Mapping[str, S]) -> S:
    """The meaning of the object's state; raises CloudError for a state that the contract does not define."""
    if obj["state"] not in states:
        raise CloudError(f"mycloud: {obj['id']} is in the unknown state {obj['state']!r}")
    return states[obj["state"]]


def _segment(id: str) -> str:
    return quote(id, safe="")


def _object(answer: Any) -> Object:
    if answer is None:
        return {}
    if not isinstance(answer, dict):
        raise CloudError(
            f"mycloud returned a {type(answer).__name__} instead of an object; check that the endpoint is mycloud's"
        )
    return answer

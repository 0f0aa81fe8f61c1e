"""The client of AWS's APIs: boto3 with this project's retries, errors and observer.

boto3's own retries are off, because `cloud_controller.retries` decides about retries. An `Api` may be shared by
threads.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs

import boto3
from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from cloud_controller import retries
from cloud_controller.cloud import CallObserver, Fence, Unavailable
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.errors import error_code, translated
from cloud_controller.clouds.aws.sessions import session_of
from cloud_controller.clouds.common.http import observed
from cloud_controller.clouds.common.rate_limiter import RateLimiter
from cloud_controller.fence import WriteRefused, unfenced
from cloud_controller.retries import RetryPolicy

__all__ = ["Api", "error_code"]

_CALL_DEADLINE = 20.0
"""Seconds after which a call is no longer retried: the controller has other objects to reconcile."""
_THROTTLED_ATTEMPTS = 20
"""Throttled calls are repeated every second, until the deadline: one that gives up fails the read of all."""
_TOKENS = {"NextToken": "NextToken", "NextMarker": "Marker", "nextToken": "nextToken"}
"""Pagination: the token's key in the response, and the parameter for the next request."""

_NOT_TAKEN = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "RequestExpired",
        "UnrecognizedClientException",
    }
)
"""Error codes of rejected or expired credentials."""
_CREDENTIALS_AGE = 10.0
"""The shortest time in seconds between two reloads of rejected credentials."""

_READS = re.compile("(Describe|Get|List|Lookup).*")
_REPEATABLE = re.compile(
    r"(Describe|Get|List|Lookup|Delete|Deregister|Register|Modify|Set|Replace|AddTags|RemoveTags|CreateTags|Configure"
    r"|ApplySecurityGroups|AttachLoadBalancer|DetachLoadBalancer|EnableAvailability|DisableAvailability).*"
)
"""Idempotent operations, by name."""


class Api:
    """AWS's APIs for one account and region, as the cloud config defines them.

    Raises the errors of `cloud_controller.cloud`; `error_code(error)` is AWS's own code. Calls that were throttled or
    never reached AWS are retried; calls that may have had an effect, only if they are idempotent. When AWS throttles an
    operation, all its callers slow down. Rejected credentials are loaded again from their source.
    """

    def __init__(
        self, config: Config, *, deadline: float = _CALL_DEADLINE, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """`deadline`: seconds for a call with all its retries."""
        self.config = config
        self.observer: CallObserver | None = None
        """Called after every attempt; see `Cloud.observe_calls`."""
        self.fence: Fence = unfenced
        """Called before every attempt that may change something, so not of a dry run; see `Cloud.fence_writes`."""
        self._policy = RetryPolicy(deadline=deadline, throttled_attempts=_THROTTLED_ATTEMPTS)
        self._sleep = sleep
        self._making = threading.RLock()
        self._session: boto3.Session | None = None
        self._session_since = 0.0
        self._clients: dict[str, Any] = {}
        self._rate_limiters: dict[tuple[str, str], RateLimiter] = {}

    def __repr__(self) -> str:
        return f"Api(cluster_id={self.config.cluster_id!r}, region={self.config.region!r})"

    @property
    def region(self) -> str:
        """The region of the cloud config, the environment or this machine. Raises InvalidConfiguration if unset."""
        return str(self._boto_session().region_name)

    def call(self, service: str, operation: str, /, *, idempotent: bool | None = None, **params: Any) -> dict[str, Any]:
        """The response of `operation` (`DescribeInstances`) of `service` (boto3's name: `ec2`, `elbv2`, …).

        `idempotent`: whether a retry is safe after a first attempt that may have had an effect; None: decided by the
        operation's name. A retried deletion may therefore raise NotFound for what it deleted itself.
        """
        safe = bool(_REPEATABLE.fullmatch(operation)) if idempotent is None else idempotent
        method = getattr(self._client(service, operation), xform_name(operation))
        limiter = self._rate_limiters.setdefault((service, operation), RateLimiter())
        end = time.monotonic() + self._policy.deadline
        name = f"{service} {operation}"

        def attempt(_: int) -> dict[str, Any]:
            paced = limiter.paced(what=f"AWS: {name}", until=end, sleep=self._sleep)
            with paced, observed(self.observer, name):
                return self._sent(service, operation, method, params)

        return retries.call(attempt, self._policy, idempotent=safe, sleep=self._sleep)

    def pages(self, service: str, operation: str, key: str, /, **params: Any) -> Iterator[dict[str, Any]]:
        """The objects under `key` on every page of a list operation; each page is one call."""
        while True:
            answer = self.call(service, operation, **params)
            if key not in answer:
                # AWS sends an empty list as such; without one, it was somebody else who answered.
                raise Unavailable(f"AWS: {service} {operation}: the response has no {key}")
            yield from answer[key]
            further = {asked: answer[told] for told, asked in _TOKENS.items() if answer.get(told)}
            if not further:
                return
            params |= further

    def signing_client(self, service: str, operation: str, before_sign: Callable[..., None]) -> Any:
        """A boto3 client for requests that are signed but not sent; `before_sign` is called with each request."""
        client = self._made(service, operation)
        client.meta.events.register("before-sign", before_sign)
        return client

    def _client(self, service: str, operation: str) -> Any:
        client = self._clients.get(service)
        if client is None:
            with self._making:
                client = self._clients.get(service)
                if client is None:
                    client = self._clients[service] = self._made(service, operation)
        return client

    def _boto_session(self) -> boto3.Session:
        with self._making:
            if self._session is None:
                try:
                    self._session = session_of(self.config)
                except (BotoCoreError, OSError) as error:
                    raise translated(error, "sts", "GetCallerIdentity") from error
                self._session_since = time.monotonic()
            return self._session

    def _forget_credentials(self) -> None:
        """Drop the session: boto3 caches credentials of a file forever, and those of a role until they expire."""
        with self._making:
            if time.monotonic() - self._session_since >= _CREDENTIALS_AGE:
                self._session = None
                self._clients.clear()

    def _made(self, service: str, operation: str) -> Any:
        # boto3's stubs type services by literal names; only the caller knows which one it is.
        name: Any = service
        try:
            client = self._boto_session().client(name)
        except (BotoCoreError, OSError) as error:
            raise translated(error, service, operation) from error
        # The fence is checked after credentials are fetched and the request is signed, because both may take long.
        client.meta.events.register_first("before-send", self._fence_request)
        return client

    def _fence_request(self, request: Any, event_name: str, **_: Any) -> None:
        """Check the fence now, and again before the body is sent, because connecting may take long too."""
        if _READS.fullmatch(event_name.rpartition(".")[2]) or _is_dry_run(request, event_name):
            return
        self.fence()
        if body := request.body:
            request.body = self._fenced(body)

    def _fenced(self, body: Any) -> Iterator[Any]:
        self.fence()
        yield body

    def _sent(
        self, service: str, operation: str, method: Callable[..., dict[str, Any]], params: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            return method(**params)
        except (BotoCoreError, ClientError, ResponseParserError, OSError) as error:
            cause = getattr(error, "kwargs", {}).get("error")  # botocore wraps what is raised while it sends.
            if isinstance(cause, WriteRefused):
                raise cause from None
            if error_code(error) in _NOT_TAKEN:
                self._forget_credentials()
            raise translated(error, service, operation) from error


def _is_dry_run(request: Any, event_name: str) -> bool:
    """Whether EC2 only checks the caller's rights: by what is sent, whoever sends it."""
    return event_name.startswith("before-send.ec2.") and parse_qs(request.body).get("DryRun") == ["true"]

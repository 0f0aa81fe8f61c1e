"""How AWS's APIs are called: boto3 underneath, with this project's retries, errors and observer.

boto3's own retries are off: what is repeated, and when, is decided in one place (`cloud_controller.clouds.retries`). An
`Api` may be shared by threads.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import boto3
from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from cloud_controller.cloud import CallObserver, CloudError, Fence, Throttled
from cloud_controller.clouds import retries
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.errors import THROTTLED_PAUSE, error_code, translated
from cloud_controller.clouds.aws.pace import Pace
from cloud_controller.clouds.aws.sessions import session_of
from cloud_controller.clouds.retries import RetryPolicy
from cloud_controller.fence import WriteRefused, unfenced

__all__ = ["Api", "error_code"]

_CALL_DEADLINE = 20.0
"""Seconds after which a call is not tried again: a controller has other objects to see to."""
_TOKENS = {"NextToken": "NextToken", "NextMarker": "Marker", "nextToken": "nextToken"}
"""How an answer says where its next page begins, and how that is asked for."""

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
"""What AWS says of credentials that it does not take, or no longer."""
_CREDENTIALS_AGE = 10.0
"""Seconds for which credentials are not looked for again, though AWS does not take them."""

_READS = re.compile("(Describe|Get|List|Lookup).*")
_REPEATABLE = re.compile(
    r"(Describe|Get|List|Lookup|Delete|Deregister|Register|Modify|Set|Replace|AddTags|RemoveTags|CreateTags|Configure"
    r"|ApplySecurityGroups|AttachLoadBalancer|DetachLoadBalancer|EnableAvailability|DisableAvailability).*"
)
"""Operations that, done twice, come to what they come to when done once."""


class Api:
    """One account of AWS in one region, as the cloud config says.

    Raises the errors of `cloud_controller.cloud`; AWS's own code of one is `error_code(error)`. What was throttled, or
    never reached AWS, is tried again; what may have been done already only where a repetition does no harm. Where one
    call of an operation is throttled, all callers of that operation slow down. Credentials that AWS does not take any
    more are looked for again, where they came from.
    """

    def __init__(
        self, config: Config, *, deadline: float = _CALL_DEADLINE, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """`deadline`: seconds for a call with all its retries."""
        self.config = config
        self.observer: CallObserver | None = None
        """Told of every attempt; see `Cloud.observe_calls`."""
        self.fence: Fence = unfenced
        """Asked before every attempt that may change something; see `Cloud.fence_writes`."""
        self._policy = RetryPolicy(deadline=deadline)
        self._sleep = sleep
        self._making = threading.RLock()
        self._session: boto3.Session | None = None
        self._session_since = 0.0
        self._clients: dict[str, Any] = {}
        self._paces: dict[tuple[str, str], Pace] = {}

    def __repr__(self) -> str:
        return f"Api(cluster_id={self.config.cluster_id!r}, region={self.config.region!r})"

    @property
    def region(self) -> str:
        """The region of the config, the environment or this machine. Raises InvalidConfiguration where none tells."""
        return str(self._boto_session().region_name)

    def call(self, service: str, operation: str, /, *, idempotent: bool | None = None, **params: Any) -> dict[str, Any]:
        """The answer of `operation` (`DescribeInstances`) of `service` (boto3's name: `ec2`, `elbv2`, …).

        `idempotent`: whether it may be repeated where the first try may have been done; None: as the operation's name
        says. So a deletion may find gone what it has deleted itself.
        """
        safe = bool(_REPEATABLE.fullmatch(operation)) if idempotent is None else idempotent
        method = getattr(self._client(service, operation), xform_name(operation))
        pace = self._paces.setdefault((service, operation), Pace())
        end = time.monotonic() + self._policy.deadline

        def attempt(_: int) -> dict[str, Any]:
            left = end - time.monotonic()
            wait = pace.turn(left)
            if wait is None:
                why = f"AWS: {service} {operation} is throttled for longer than the call's deadline"
                raise Throttled(why, max(left, THROTTLED_PAUSE))
            if wait:
                self._sleep(wait)
            return self._observed(service, operation, method, params, pace)

        return retries.call(attempt, self._policy, idempotent=safe, sleep=self._sleep)

    def pages(self, service: str, operation: str, key: str, /, **params: Any) -> Iterator[dict[str, Any]]:
        """The objects under `key` of every page of an operation that lists, each page a call of its own."""
        while True:
            answer = self.call(service, operation, **params)
            yield from answer.get(key) or ()
            further = {asked: answer[told] for told, asked in _TOKENS.items() if answer.get(told)}
            if not further:
                return
            params |= further

    def signing_client(self, service: str, operation: str, before_sign: Callable[..., None]) -> Any:
        """boto3's client of a service, for what is signed and not sent; `before_sign` sees each request before."""
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
        """boto3 keeps those of a file for ever, and those of a role until the end that STS named."""
        with self._making:
            if time.monotonic() - self._session_since >= _CREDENTIALS_AGE:
                self._session = None
                self._clients.clear()

    def _made(self, service: str, operation: str) -> Any:
        # boto3 knows the services by name alone; which one it is, only the caller does.
        name: Any = service
        try:
            client = self._boto_session().client(name)
        except (BotoCoreError, OSError) as error:
            raise translated(error, service, operation) from error
        # Credentials are fetched and the request is signed by then, which may take long.
        client.meta.events.register_first("before-send", self._fence_request)
        return client

    def _fence_request(self, request: Any, event_name: str, **_: Any) -> None:
        """Check the fence now, and again when only the body is still to be sent: connecting may take long too."""
        if _READS.fullmatch(event_name.rpartition(".")[2]):
            return
        self.fence()
        if body := request.body:
            request.body = self._fenced(body)

    def _fenced(self, body: Any) -> Iterator[Any]:
        self.fence()
        yield body

    def _observed(
        self, service: str, operation: str, method: Callable[..., dict[str, Any]], params: dict[str, Any], pace: Pace
    ) -> dict[str, Any]:
        started = time.monotonic()
        failure: CloudError | None = None
        try:
            answer = method(**params)
        except (BotoCoreError, ClientError, ResponseParserError, OSError) as error:
            cause = getattr(error, "kwargs", {}).get("error")  # botocore wraps what is raised while it sends.
            if isinstance(cause, WriteRefused):
                raise cause from None
            failure = translated(error, service, operation)
            if isinstance(failure, Throttled):
                pace.throttled(failure.retry_after)
            elif error_code(error) in _NOT_TAKEN:
                self._forget_credentials()
            raise failure from error
        finally:
            if self.observer is not None:
                self.observer(f"{service} {operation}", time.monotonic() - started, failure)
        pace.went_through()
        return answer

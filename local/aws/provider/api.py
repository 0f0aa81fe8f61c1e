"""AWS's API at an endpoint of this machine: clients, errors, and waiting for slow operations."""

from __future__ import annotations

import ipaddress
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    HTTPClientError,
    ParamValidationError,
)
from botocore.parsers import ResponseParserError

from local.plugins.provider import OutcomeUnknown, ProviderError, Report
from local.plugins.provider_inputs import structured
from local.plugins.values import PropertyMap

_PAUSE: Final = 0.2
"""Seconds between two polls, at first; it grows to ten times that."""
_DUMMY: Final = "simulated"
"""Replaces missing credentials; a simulator need not check them."""
_PAUSES: Final = (0.2, 0.4, 0.8, 1.6)
"""Seconds before a call is repeated."""
_ASKING: Final = ("describe_", "get_", "list_")
_THROTTLED: Final = ("Throttl", "RequestLimitExceeded", "TooManyRequests", "RequestThrottled")
"""The prefixes of the error codes with which AWS's services report throttling."""
_NEXT: Final = ("NextToken", "Marker")
"""The keys of the next page's token, in answers and in calls; the second is IAM's."""
_MAKING: Final = threading.Lock()
"""Held while a client is made: the session is not thread-safe during that."""


class AwsError(ProviderError):
    """The API rejected a call; `code` is AWS's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def missing(self) -> bool:
        """Whether the object of the call does not exist."""
        return "NotFound" in self.code or self.code == "NoSuchEntity"

    @property
    def throttled(self) -> bool:
        """Whether the call was throttled, and so had no effect."""
        return self.code.startswith(_THROTTLED)


class WaitEnded(ProviderError):
    """The wait timed out or was interrupted."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time limit of a step's waits, and where it reports what it waits for."""

    at: float
    report: Report
    stop: threading.Event
    """Set when all waits are to end."""

    def until(self, what: str, done: Callable[[], bool]) -> None:
        """Poll until a condition holds. Raises WaitEnded."""
        pause = _PAUSE
        reported = False
        while not done():
            if time.monotonic() >= self.at:
                raise WaitEnded(f"{what}: timed out")
            if not reported:
                self.report(f"waiting: {what}")
                reported = True
            if self.stop.wait(min(pause, max(0.0, self.at - time.monotonic()))):
                raise WaitEnded(f"{what}: interrupted while waiting")
            pause = min(pause * 1.5, _PAUSE * 10)


def endpoints_of(config: PropertyMap) -> Mapping[str, str]:
    """The URL of each service, from a provider's plain inputs."""
    given = structured(config, "endpoints")
    entries = given if isinstance(given, list) else [given] if given else []
    if not all(isinstance(entry, dict) for entry in entries):
        raise ProviderError("endpoints must be a list of maps from service to URL")
    return {service: url for entry in entries for service, url in entry.items() if isinstance(url, str)}


def is_local(config: PropertyMap) -> bool:
    """Whether a provider's plain inputs refer only to this machine."""
    found = endpoints_of(config)
    return bool(found) and all(_on_loopback(url) for url in found.values())


@lru_cache(maxsize=1)
def shared_session() -> boto3.session.Session:
    """boto3's session, shared by all: it keeps the models of the services, and reading EC2's takes a second."""
    return boto3.session.Session()


def _credentials(config: PropertyMap, environment: Mapping[str, str]) -> tuple[str, str, str | None]:
    """Key, secret and token: from the inputs, else the environment. Neither a user's profile nor a machine's role."""
    if key := config.get("accessKey"):
        return str(key), str(config.get("secretKey") or ""), config.get("token") or None
    key, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if key and secret:
        return key, secret, environment.get("AWS_SESSION_TOKEN") or None
    return _DUMMY, _DUMMY, None


def _on_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Api:
    """Clients of the services at an endpoint, made on first use. Thread-safe."""

    def __init__(self, config: PropertyMap) -> None:
        """`config`: the provider's plain inputs. Raises ProviderError for missing inputs or an endpoint elsewhere."""
        if not is_local(config):
            raise ProviderError("endpoints must all be on this machine (127.0.0.1)")
        region = config.get("region")
        if not isinstance(region, str) or not region:
            raise ProviderError("region is missing: set the config value `aws:region`, or the provider's `region`")
        self.region = region
        self._endpoints = endpoints_of(config)
        key, secret, token = _credentials(config, os.environ)
        self._access = {"aws_access_key_id": key, "aws_secret_access_key": secret, "aws_session_token": token}
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def call(self, service: str, operation: str, **params: Any) -> dict[str, Any]:
        """One call, such as ("ec2", "describe_vpcs"). Raises AwsError, ProviderError, OutcomeUnknown.

        It is repeated while AWS throttles it; a read is also repeated when the answer was lost.
        """
        for pause in _PAUSES:
            try:
                return self._attempt(service, operation, params)
            except AwsError as error:
                if not error.throttled:
                    raise
            except OutcomeUnknown:
                if not operation.startswith(_ASKING):
                    raise
            time.sleep(pause)
        return self._attempt(service, operation, params)

    def _attempt(self, service: str, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        client = self._client(service)
        try:
            answer: dict[str, Any] = getattr(client, operation)(**params)
        except ClientError as error:
            info = error.response.get("Error", {})
            code = str(info.get("Code", ""))
            # A numeric code is not AWS's, but HTTP's: an error page of a simulator.
            what = f"HTTP {code}; the endpoint may lack it" if code.isdigit() else f"{code}: {info.get('Message', '')}"
            refused = AwsError(code, f"{service} {operation}: {what}")
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500 and not refused.throttled:
                raise OutcomeUnknown(str(refused)) from None
            raise refused from None
        except ResponseParserError:
            raise OutcomeUnknown(
                f"{service} {operation}: the answer is not in AWS's form; the endpoint may lack it"
            ) from None
        except HTTPClientError as error:
            raise OutcomeUnknown(f"{service} {operation}: the answer was lost: {error}") from None
        except EndpointConnectionError as error:
            raise ProviderError(f"{service} {operation}: {error}") from None
        except ParamValidationError as error:
            # The value follows.
            what = str(error).partition(", value: ")[0]
            raise ProviderError(f"{service} {operation}: {' '.join(what.split())}") from None
        except BotoCoreError as error:
            # Its text may contain the parameters.
            raise ProviderError(f"{service} {operation}: {type(error).__name__}") from None
        return answer

    def all(self, service: str, operation: str, key: str, **params: Any) -> list[dict[str, Any]]:
        """The items of all pages of a describe or list. Raises as `call` does."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self.call(service, operation, **params)
            found += answer.get(key) or []
            name = next((name for name in _NEXT if answer.get(name)), None)
            if name is None:
                return found
            params[name] = answer[name]

    def one(self, service: str, operation: str, key: str, **params: Any) -> dict[str, Any] | None:
        """The one described item; None if there is none. Raises as `call` does."""
        try:
            found = self.call(service, operation, **params)[key]
        except AwsError as error:
            if error.missing:
                return None
            raise
        if isinstance(found, list):
            return found[0] if found else None
        return dict(found)

    def _client(self, service: str) -> Any:
        with self._lock:
            if service not in self._clients:
                if service not in self._endpoints:
                    raise ProviderError(f"endpoints has no URL for {service}")
                # botocore's own retries would repeat a create whose answer was lost; and no proxy from the environment
                # may see calls that stay on this machine.
                config = Config(retries={"total_max_attempts": 1}, connect_timeout=5, proxies={})
                make: Any = shared_session().client
                with _MAKING:
                    self._clients[service] = make(
                        service,
                        region_name=self.region,
                        endpoint_url=self._endpoints[service],
                        config=config,
                        **self._access,
                    )
            return self._clients[service]

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

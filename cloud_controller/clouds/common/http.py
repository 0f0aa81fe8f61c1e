"""Sends requests to a cloud's HTTP API: the fence is checked at the socket, and every failure has its type.

Which failure it is decides whether a write may be sent again: `NeverReached` had no effect, `Unavailable` may have.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationParseError,
    NewConnectionError,
    ReadTimeoutError,
    SSLError,
)

from cloud_controller import fenced_http
from cloud_controller.cloud import CallObserver, CloudError, Fence, InvalidConfiguration, Unavailable
from cloud_controller.retries import NeverReached

_CONNECT_TIMEOUT = 5.0


class Http:
    """Connections to the API of one cloud, whose name is in every error. May be shared by threads.

    `timeout`: seconds for one attempt. TLS certificates are verified, with the authorities in `ca_file` instead of the
    system's if it is given; redirects are not followed.
    """

    def __init__(self, cloud: str, *, timeout: float, ca_file: str | None = None) -> None:
        self._cloud = cloud
        self._pool = urllib3.PoolManager(
            maxsize=32,
            timeout=urllib3.Timeout(connect=min(_CONNECT_TIMEOUT, timeout), read=timeout),
            retries=False,
            ca_certs=ca_file,
        )
        self._pool.pool_classes_by_scheme = fenced_http.POOLS

    def send(
        self,
        method: str,
        endpoint: str,
        target: str,
        *,
        what: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        fence: Fence,
    ) -> urllib3.BaseHTTPResponse:
        """The answer to one request to `endpoint` (`https://HOST`) and `target` (`/path?query`), whatever its status.

        `what` names the request in errors, without its query. The fence is checked right before the request is sent.
        """
        where = f"{self._cloud} at {endpoint}"
        try:
            with fenced_http.checking(fence):
                return self._pool.request(method, endpoint + target, body=body, headers=headers, redirect=False)
        except LocationParseError:
            raise InvalidConfiguration("endpoint", "not a valid URL", "http://HOST:PORT or https://HOST") from None
        except (NewConnectionError, ConnectTimeoutError) as error:
            raise NeverReached(
                f"could not connect to {where} ({_cause(error)}); check the endpoint and its API"
            ) from None
        except SSLError as error:
            if isinstance(_innermost(error), ssl.SSLCertVerificationError):
                raise NeverReached(f"could not verify the certificate of {where} ({_cause(error)})") from None
            raise Unavailable(f"{where}: connection lost during {what} ({_cause(error)})") from None
        except ReadTimeoutError:
            raise Unavailable(f"{where} did not respond to {what} in time") from None
        except HTTPError as error:
            raise Unavailable(f"{where}: connection lost during {what} ({_cause(error)})") from None


@contextmanager
def observed(observer: CallObserver | None, operation: str) -> Iterator[None]:
    """One attempt, which the observer hears of: see `Cloud.observe_calls`."""
    started = time.monotonic()
    failure: CloudError | None = None
    try:
        yield
    except CloudError as error:
        failure = error
        raise
    finally:
        if observer is not None:
            observer(operation, time.monotonic() - started, failure)


def _innermost(error: BaseException) -> BaseException:
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return error


def _cause(error: HTTPError) -> str:
    """The innermost cause as text; urllib3 wraps it in texts full of object addresses."""
    cause = _innermost(error)
    strerror = cause.strerror if isinstance(cause, OSError) else None
    return strerror or (str(cause) if not isinstance(cause, HTTPError) else type(cause).__name__)

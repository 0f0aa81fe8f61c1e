"""Where the client's access key comes from: the cloud config, a role of the pod (RRSA), or the machine's role.

Keys of roles expire. One is fetched anew some minutes before; if that fails, the old one is used while it is valid, and
the fetch is tried again. Tokens travel in headers and form bodies, never in a URL, and are hidden from logs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from cloud_controller.cloud import AccessDenied, CallObserver, CloudError, InvalidConfiguration, Unavailable
from cloud_controller.clouds.alicloud.client import Client, Credentials, Key
from cloud_controller.clouds.alicloud.config import METADATA, AccessKey, Config
from cloud_controller.clouds.alicloud.endpoints import endpoint
from cloud_controller.clouds.common.http import Http
from cloud_controller.clouds.common.sendable import sendable
from cloud_controller.fence import unfenced
from cloud_controller.retries import NeverReached

ROLE, PROVIDER, TOKEN_FILE = (
    "ALIBABA_CLOUD_ROLE_ARN",
    "ALIBABA_CLOUD_OIDC_PROVIDER_ARN",
    "ALIBABA_CLOUD_OIDC_TOKEN_FILE",
)
"""The environment of a pod with a role; ACK's webhook sets it, and so do our manifests."""

_LIFETIME = 3600
"""Seconds for which a role is assumed: what every role allows."""
_MARGIN = 300.0
"""Seconds before its end when a key is replaced. The metadata service has a new one half an hour before."""
_PAUSE = 20.0
"""Seconds after a failed fetch, while the old key is valid."""
_FAILURE_KEPT = 3.0
"""Seconds for which a failed fetch counts for every caller, so that not each of them waits for the same silence."""
_METADATA_PATH = "/latest/meta-data/ram/security-credentials/"
_METADATA_TOKEN = "X-aliyun-ecs-metadata-token"

_log = logging.getLogger(__name__)


def of_config(config: Config, environment: Mapping[str, str], observer: CallObserver | None = None) -> Credentials:
    """The credentials that the cloud config has, otherwise the pod's role, otherwise the machine's.

    `observer` is called after every attempt to assume the pod's role.
    """
    if config.access_key is not None:
        return FixedKey(config.access_key)
    if environment.get(ROLE):
        missing = [name for name in (PROVIDER, TOKEN_FILE) if not environment.get(name)]
        if missing:
            raise InvalidConfiguration(f"environment variable {missing[0]}", f"missing, but {ROLE} is set")
        return RoleKey(PodRole(config, environment, observer).fetch)
    return RoleKey(MachineRole(endpoint(config, METADATA)).fetch)


@dataclass(frozen=True, slots=True)
class FixedKey:
    """A key that never changes; None: calls are not signed."""

    given: AccessKey | None

    def key(self) -> Key | None:
        """See `Credentials.key`."""
        return self.given

    def refused(self, key: Key) -> bool:  # noqa: ARG002
        """See `Credentials.refused`: there is no other."""
        return False


@dataclass(frozen=True, slots=True)
class _Held:
    key: AccessKey
    expires: float
    next_fetch: float


class RoleKey:
    """The key of a role, with the seconds since the epoch when it expires."""

    def __init__(self, fetch: Callable[[], tuple[AccessKey, float]], *, now: Callable[[], float] = time.time) -> None:
        self._fetch = fetch
        self._now = now
        self._lock = threading.Lock()
        self._held: _Held | None = None
        self._failure: CloudError | None = None
        self._failed_until = 0.0

    def key(self) -> Key | None:
        """See `Credentials.key`. One thread fetches; the others use the old key while it is valid, or wait."""
        held = self._held
        if held is not None and self._now() < held.next_fetch:
            return held.key
        valid = held is not None and self._now() < held.expires
        if not self._lock.acquire(blocking=not valid):
            return held.key if held is not None else None
        try:
            return self._renewed().key
        finally:
            self._lock.release()

    def refused(self, key: Key) -> bool:
        """See `Credentials.refused`: fetch another one."""
        with self._lock:
            if self._held is None or self._held.key is not key:
                return True  # Another thread has replaced it.
            self._held = None
            return self._renewed().key.id != key.id

    def _renewed(self) -> _Held:
        """What is held, fetched anew if it is time; needs the lock."""
        held, now = self._held, self._now()
        if held is not None and now < held.next_fetch:
            return held
        if self._failure is not None and now < self._failed_until:
            raise self._failure.with_traceback(None)
        try:
            key, expires = self._fetch()
        except CloudError as error:
            now = self._now()
            if held is None or now >= held.expires:
                self._failure, self._failed_until = error, now + _FAILURE_KEPT
                raise
            _log.warning("could not renew the key of the role retry_in=%.0fs error=%r", _PAUSE, str(error))
            self._held = _Held(held.key, held.expires, min(now + _PAUSE, held.expires))
            return self._held
        now = self._now()
        left = expires - now
        self._held, self._failure = _Held(key, expires, now + max(left / 2, left - _MARGIN)), None
        return self._held


class PodRole:
    """RRSA: the token of the pod's ServiceAccount is exchanged for the key of a role."""

    def __init__(self, config: Config, environment: Mapping[str, str], observer: CallObserver | None = None) -> None:
        self._role, self._provider = environment[ROLE], environment[PROVIDER]
        self._token_file = Path(environment[TOKEN_FILE])
        self._session = config.session_name
        self._client = Client(config.region, lambda product: endpoint(config, product), FixedKey(None))
        self._client.observer = observer

    def fetch(self) -> tuple[AccessKey, float]:
        """Assume the role. Raises CloudError."""
        parameters = {
            "RoleArn": self._role,
            "OIDCProviderArn": self._provider,
            "OIDCToken": self._token(),
            "RoleSessionName": self._session,
            "DurationSeconds": _LIFETIME,
        }
        answer = self._client.call("sts", "AssumeRoleWithOIDC", parameters, repeatable=True)
        return _role_key(answer.get("Credentials"), "sts AssumeRoleWithOIDC")

    def _token(self) -> str:
        """Kubernetes replaces the token in the file."""
        field = f"environment variable {TOKEN_FILE}"
        try:
            return sendable(field, self._token_file.read_text().strip())
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "not a text file"
            raise InvalidConfiguration(field, f"could not read the file: {why}") from None


class MachineRole:
    """The role of the machine that this process runs on, by its metadata service in the mode that asks for a token."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = Http("Alibaba Cloud's metadata service", timeout=5.0)

    def fetch(self) -> tuple[AccessKey, float]:
        """Read the key. Raises CloudError."""
        token = self._ask("PUT", "/latest/api/token", {f"{_METADATA_TOKEN}-ttl-seconds": "60"})
        headers = {_METADATA_TOKEN: sendable("metadata token", token)}
        role = self._ask("GET", _METADATA_PATH, headers).strip()
        content = self._ask("GET", f"{_METADATA_PATH}{role}", headers)
        try:
            return _role_key(orjson.loads(content), "metadata service")
        except orjson.JSONDecodeError:
            raise Unavailable("Alibaba Cloud: the metadata service did not return the key of a role") from None

    def _ask(self, method: str, path: str, headers: Mapping[str, str]) -> str:
        what = f"{method} {path}"
        try:
            answer = self._http.send(method, self._url, path, what=what, headers=headers, fence=unfenced)
        except NeverReached as error:
            raise NeverReached(f"{error}; the cloud config has no access key, and the pod no role") from None
        if answer.status == 404:
            raise AccessDenied("Alibaba Cloud: no access key in the cloud config, no role of the pod or the machine")
        if answer.status >= 300:
            raise Unavailable(f"Alibaba Cloud: metadata service: {what}: HTTP {answer.status}")
        return answer.data.decode(errors="replace")


def _role_key(content: Any, what: str) -> tuple[AccessKey, float]:
    try:
        token = sendable("session token", content["SecurityToken"])
        secret = sendable("access key", content["AccessKeySecret"])
        expires = datetime.strptime(content["Expiration"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        return AccessKey(content["AccessKeyId"], secret, token), expires.timestamp()
    except (KeyError, TypeError, ValueError, AttributeError):
        # Without the answer, which holds the key.
        raise Unavailable(f"Alibaba Cloud: {what} did not return the key of a role") from None

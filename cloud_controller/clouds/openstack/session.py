"""The token of a session with Keystone and the endpoints in its catalog, asked for once and again when it expires."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from cloud_controller import logs
from cloud_controller.cloud import AccessDenied, CallObserver, CloudError, InvalidConfiguration
from cloud_controller.clouds.common.http import Http, observed
from cloud_controller.clouds.openstack.credentials import Credentials
from cloud_controller.clouds.openstack.errors import of_status
from cloud_controller.clouds.openstack.names import Interface
from cloud_controller.fence import unfenced
from cloud_controller.retries import retry_after

_RENEWED_BEFORE = 60.0
"""Seconds before its end at which a token is replaced."""
_VERSIONS = {"network": "v2.0", "load-balancer": "v2", "compute": "v2.1", "key-manager": "v1"}
"""What is added to an endpoint whose catalog entry names no version."""
_ALIASES = {"load-balancer": ("load-balancer", "load_balancer")}
"""Further types by which catalogs know a service."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and the catalog that came with it."""

    text: str = field(repr=False)
    ends_at: float
    """Seconds since the epoch."""
    catalog: Sequence[Mapping[str, Any]] = field(repr=False)
    project: str
    """Its ID."""


class Session:
    """Keystone's answers for one set of credentials and one region. Safe to share between threads."""

    def __init__(
        self,
        http: Http,
        auth_url: str,
        credentials: Credentials,
        *,
        region: str = "",
        interface: Interface = "public",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`auth_url` with or without its `/v3`. `region`: required if the catalog has several."""
        self.auth_url = re.sub(r"/v3/?$", "", auth_url.rstrip("/"))
        self._http = http
        self._credentials = credentials
        self._region = region
        self._interface = interface
        self._clock = clock
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._failure: CloudError | None = None
        self._failed_at = -math.inf

    def token(self, *, instead_of: Token | None = None, observer: CallObserver | None = None) -> Token:
        """The current token; another one if this is the one that a service refused. Callers share one request, and its
        failure: otherwise the last of many would wait for the silence that each of them meets."""
        asked_at = time.monotonic()
        with self._lock:
            if (
                self._token is None
                or self._token is instead_of
                or self._clock() > self._token.ends_at - _RENEWED_BEFORE
            ):
                if self._failure is not None and self._failed_at > asked_at:
                    raise self._failure.with_traceback(None)
                try:
                    with observed(observer, "POST identity auth/tokens"):
                        self._token = self._new_token()
                except CloudError as error:
                    self._failure, self._failed_at = error, time.monotonic()
                    raise
            return self._token

    def endpoint(self, token: Token, service: str) -> str:
        """The URL of a service's API with its version. Raises InvalidConfiguration unless the catalog has one."""
        found = {
            (str(each.get("region_id") or each.get("region")), str(each["url"]).rstrip("/"))
            for entry in token.catalog
            if entry.get("type") in _ALIASES.get(service, (service,))
            for each in entry.get("endpoints", ())
            if each.get("interface") == self._interface
        }
        regions = sorted({region for region, _ in found})
        urls = sorted({url for region, url in found if self._region in ("", region)})
        if len(urls) != 1:
            raise InvalidConfiguration(
                "cloud config: [Global] region",
                f"the catalog has {'no' if not urls else 'several'} {self._interface} endpoint{'s' * bool(urls)} of "
                f"{service}" + (f" in {self._region}" if self._region else ""),
                ", ".join(regions) or "the catalog has this service in no region",
            )
        return urls[0] if re.search(r"/v\d+(\.\d+)?(/|$)", urls[0]) else f"{urls[0]}/{_VERSIONS[service]}"

    def region(self, token: Token) -> str:
        """The region of the cloud config, else the only one of the compute service's endpoints."""
        if self._region:
            return self._region
        regions = {
            str(each.get("region_id") or "")
            for entry in token.catalog
            if entry.get("type") == "compute"
            for each in entry.get("endpoints", ())
        }
        return next(iter(regions)) if len(regions) == 1 else ""

    def _new_token(self) -> Token:
        what = "POST identity auth/tokens"
        body = orjson.dumps(self._credentials.body())
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        # A token changes nothing that others see, so a process that does not lead may ask for one.
        answer = self._http.send(
            "POST", self.auth_url, "/v3/auth/tokens", what=what, headers=headers, body=body, fence=unfenced
        )
        if answer.status != 201:
            raise of_status(answer.status, answer.data, what, retry_after(answer.headers.get("Retry-After")))
        try:
            told = orjson.loads(answer.data)["token"]
            text = answer.headers["X-Subject-Token"]
            ends_at = datetime.fromisoformat(told["expires_at"]).timestamp()
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            raise CloudError(f"OpenStack: {self.auth_url} answered without a token; check [Global] auth-url") from None
        if "project" not in told:
            raise AccessDenied("OpenStack: the token has no project; name one with [Global] tenant-id or tenant-name")
        logs.hide(text)
        return Token(text, ends_at, told.get("catalog") or (), told["project"]["id"])

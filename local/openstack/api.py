"""A client for test set-up: an administrator, or a project's user. It fails at anything unexpected."""

from __future__ import annotations

from typing import Any

import orjson
from urllib3 import BaseHTTPResponse

from local.http_client import pool
from local.openstack.configs import PASSWORD

Object = dict[str, Any]

_POOL = pool(120.0)


class ApiError(Exception):
    """A service refused a request; `status` is its HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text}")
        self.status = status


class Api:
    """The services as one user of one project sees them; a token that has expired is replaced."""

    def __init__(
        self, identity: str, user: str = "admin", project: str = "admin", urls: dict[str, str] | None = None
    ) -> None:
        """`identity`: Keystone's URL without version. `urls`: the other endpoints, with their versions."""
        self.urls = {"identity": f"{identity}/v3", **(urls or {})}
        self._user = user
        self._project = project
        self._token = self._login()

    def get(self, service: str, path: str) -> Object:
        return self.request("GET", service, path)

    def post(self, service: str, path: str, body: Any) -> Object:
        return self.request("POST", service, path, body)

    def put(self, service: str, path: str, body: Any = None) -> Object:
        return self.request("PUT", service, path, body)

    def delete(self, service: str, path: str) -> None:
        self.request("DELETE", service, path)

    def request(self, method: str, service: str, path: str, body: Any = None) -> Object:
        """The answer. Raises ApiError."""
        answer = self._sent(method, service, path, body)
        if answer.status == 401:
            self._token = self._login()
            answer = self._sent(method, service, path, body)
        if answer.status >= 300:
            raise ApiError(answer.status, answer.data.decode())
        found: Object = orjson.loads(answer.data) if answer.data else {}
        return found

    def _sent(self, method: str, service: str, path: str, body: Any) -> BaseHTTPResponse:
        # The first microversion of Nova that shows servers' host names to all.
        headers = {"X-Auth-Token": self._token, "OpenStack-API-Version": "compute 2.90"}
        headers["Content-Type"] = "application/json"
        data = None if body is None else orjson.dumps(body)
        return _POOL.request(method, f"{self.urls[service]}/{path}", headers=headers, body=data)

    def _login(self) -> str:
        domain = {"domain": {"id": "default"}}
        who = {"methods": ["password"], "password": {"user": {"name": self._user, "password": PASSWORD, **domain}}}
        body = {"auth": {"identity": who, "scope": {"project": {"name": self._project, **domain}}}}
        answer = _POOL.request("POST", f"{self.urls['identity']}/auth/tokens", json=body)
        if answer.status != 201:
            raise ApiError(answer.status, answer.data.decode())
        return answer.headers["X-Subject-Token"]

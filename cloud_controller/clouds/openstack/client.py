"""The client of OpenStack's APIs: typed errors, retries, pages, and a new token when one expires; without an SDK.

Why without: docs/decisions/0020. Objects are plain JSON. A client may be shared by threads.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import orjson

from cloud_controller import retries
from cloud_controller.cloud import CallObserver, CloudError, Fence, NotFound
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.clouds.common.http import Http, observed
from cloud_controller.clouds.openstack.errors import Unauthorized, of_status
from cloud_controller.clouds.openstack.session import Session, Token
from cloud_controller.fence import unfenced
from cloud_controller.retries import RetryPolicy, retry_after

Object = dict[str, Any]
Objects = list[Object]

_CALL_DEADLINE = 20.0
"""Seconds after which a call is no longer retried: the controller has other objects to reconcile."""
_FILTER = 3000
"""Characters of a list's filter: servers limit URLs."""
COMPUTE_VERSION = "2.47"
"""The first microversion of Nova whose servers hold their flavor's name, so that no flavor is read (2017)."""
_ID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")


class OpenStackClient:
    """The services of one project in one region.

    Raises the errors of `cloud_controller.cloud`. Calls that were throttled or never reached the API are retried;
    calls that may have had an effect only if they are not POSTs. A refused token is replaced once. `service` is a type
    of the catalog: `network`, `load-balancer`, `compute`; paths begin after the version: `lbaas/loadbalancers`.
    """

    def __init__(
        self,
        session: Session,
        http: Http,
        *,
        deadline: float = _CALL_DEADLINE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`deadline`: seconds for a call with all its retries."""
        self.session = session
        self.observer: CallObserver | None = None
        """Called after every attempt; see `Cloud.observe_calls`."""
        self.fence: Fence = unfenced
        """Called before every attempt that may change something; see `Cloud.fence_writes`."""
        self._http = http
        self._policy = RetryPolicy(deadline=deadline)
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"OpenStackClient({self.session.auth_url!r})"

    @property
    def region(self) -> str:
        """The name of the region; "" if neither the cloud config nor the catalog says it."""
        return self.session.region(self._token())

    @property
    def project(self) -> str:
        """The ID of the project."""
        return self._token().project

    def get(self, service: str, path: str, **query: Any) -> Object:
        """The answer to a GET; raises NotFound."""
        return self._call("GET", service, path, query=query)

    def list(self, service: str, path: str, key: str, **query: Any) -> Objects:
        """Every object on every page of a list, whose objects are under `key`. Values that are lists are repeated."""
        return [*self._pages(service, path, key, query)]

    def list_by(self, service: str, path: str, key: str, field: str, values: Collection[str]) -> Objects:
        """The objects of a list whose field has one of these values, once each: in several calls if they are many."""
        most = max(1, _FILTER // max((len(field) + len(each) for each in values), default=1))
        queries = ({field: [*some]} for some in batches(sorted(values), most))
        found = {each["id"]: each for query in queries for each in self.list(service, path, key, **query)}
        return [*found.values()]

    def post(self, service: str, path: str, body: Any = None) -> Object:
        """Create something."""
        return self._call("POST", service, path, body)

    def put(self, service: str, path: str, body: Any = None, *, if_revision: int | None = None) -> Object:
        """Change something. `if_revision`: raises Overtaken if Neutron has another revision of it."""
        headers = {} if if_revision is None else {"If-Match": f"revision_number={if_revision}"}
        return self._call("PUT", service, path, body, headers=headers)

    def delete(self, service: str, path: str, **query: Any) -> Object:
        """Delete something; raises NotFound if it did not exist before this call."""
        return self._call("DELETE", service, path, query=query)

    def _pages(self, service: str, path: str, key: str, query: Mapping[str, Any]) -> Iterator[Object]:
        asked: dict[str, Any] = {**query}
        while True:
            answer = self._call("GET", service, path, query=asked)
            if not isinstance(answer.get(key), list):
                raise CloudError(
                    f"OpenStack: GET {service} {path} returned no {key}; check the endpoint in the catalog"
                )
            yield from answer[key]
            # Named after the objects (`servers_links`, `ports_links`); only the last page has no `next`.
            links = answer.get(f"{key}_links") or ()
            following = next((str(link["href"]) for link in links if link.get("rel") == "next"), None)
            if following is None or not answer[key]:
                return
            # Only the marker: the link's host may be one that proxies hide, and its path another than the catalog's.
            asked = {**query, **_paging(following)}

    def _call(
        self,
        method: str,
        service: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Object:
        target = f"{path}?{urlencode(query, doseq=True)}" if query else path

        def attempt(number: int) -> Object:
            try:
                return self._authorised(method, service, target, body, headers or {})
            except NotFound:
                # After a lost answer, "not found" means that the first attempt deleted it.
                if method == "DELETE" and number > 0:
                    return {}
                raise

        return retries.call(attempt, self._policy, idempotent=method != "POST", sleep=self._sleep)

    def _authorised(self, method: str, service: str, target: str, body: Any, headers: Mapping[str, str]) -> Object:
        operation = operation_of(method, service, target)

        def sent(token: Token) -> Object:
            with observed(self.observer, operation):
                return self._send(method, service, target, body, headers, token)

        token = self._observed_token()
        try:
            return sent(token)
        except Unauthorized:
            fresh = self._observed_token(instead_of=token)
        return sent(fresh)

    def _token(self) -> Token:
        return retries.call(lambda _: self._observed_token(), self._policy, idempotent=True, sleep=self._sleep)

    def _observed_token(self, instead_of: Token | None = None) -> Token:
        return self.session.token(instead_of=instead_of, observer=self.observer)

    def _send(self, method: str, service: str, target: str, body: Any, more: Mapping[str, str], token: Token) -> Object:
        what = f"{method} {service} {target.partition('?')[0]}"
        headers = {"X-Auth-Token": token.text, "Accept": "application/json", **more}
        if service == "compute":
            headers["OpenStack-API-Version"] = f"compute {COMPUTE_VERSION}"
        data = None if body is None else orjson.dumps(body)
        if data is not None:
            headers["Content-Type"] = "application/json"
        url = urlsplit(self.session.endpoint(token, service))
        fence = unfenced if method == "GET" else self.fence
        answer = self._http.send(
            method,
            f"{url.scheme}://{url.netloc}",
            f"{url.path}/{target}",
            what=what,
            headers=headers,
            body=data,
            fence=fence,
        )
        if not 200 <= answer.status < 300:
            raise of_status(answer.status, answer.data, what, retry_after(answer.headers.get("Retry-After")))
        return _decoded(answer.data, what)


def operation_of(method: str, service: str, target: str) -> str:
    """The operation of a call without IDs: `GET network ports`, `PUT load-balancer lbaas/pools/ID`."""
    return f"{method} {service} {_ID.sub('ID', target.partition('?')[0])}"


def _paging(link: str) -> dict[str, str]:
    return {key: value for key, value in parse_qsl(urlsplit(link).query) if key in ("marker", "limit")}


def _decoded(data: bytes, what: str) -> Object:
    if not data:
        return {}
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        raise CloudError(f"OpenStack: {what}: the answer is no JSON object; check the endpoint in the catalog")
    return content

"""The Kubernetes API client: verbs on plain objects, over one thread-safe connection pool."""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from cloud_controller import kube_errors
from cloud_controller.fence import Fence
from cloud_controller.kube import config
from cloud_controller.kube.rate_limit import RateLimit
from cloud_controller.kube.resources import Object, ObjectList, PatchType, Resource, name, namespace
from cloud_controller.kube.transport import Transport
from cloud_controller.kube.watch import Watch

PAGE = 500
"""Objects per page of a list."""
WATCH_SECONDS = 300
"""The server ends a watch after this many seconds (up to twice as many); a new one resumes it."""
WATCH_SILENCE = 150.0
"""Seconds of silence after which a watch is closed. A live server sends a bookmark every minute."""


class Kube:
    """A Kubernetes API server, used with one identity. Every method raises `ApiError` or a subclass."""

    def __init__(
        self,
        connection: config.Connection,
        *,
        rate_limit: RateLimit | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._connection = connection
        self._transport = transport or Transport(connection, rate_limit)
        self._discovered: dict[str, dict[str, Resource]] = {}
        self._discovery_lock = threading.Lock()

    @classmethod
    def from_kubeconfig(cls, text: str, *, context: str | None = None, rate_limit: RateLimit | None = None) -> Kube:
        """Create a client from a kubeconfig's text. Raises `KubeconfigError` (a ValueError)."""
        return cls(config.from_kubeconfig(text, context=context), rate_limit=rate_limit)

    @classmethod
    def from_file(cls, path: Path, *, context: str | None = None, rate_limit: RateLimit | None = None) -> Kube:
        """Create a client from a kubeconfig file. Raises `KubeconfigError`, also if the file cannot be read."""
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not a UTF-8 text file"
            raise config.KubeconfigError(f"cannot read kubeconfig {path}: {why}") from error
        return cls(config.from_kubeconfig(text, context=context, directory=path.parent), rate_limit=rate_limit)

    @classmethod
    def in_cluster(cls, service_account_dir: Path | None = None, *, rate_limit: RateLimit | None = None) -> Kube:
        """Create a client with the pod's service account, whose rotating token is reloaded."""
        return cls(config.in_cluster(service_account_dir), rate_limit=rate_limit)

    def with_timeout(self, seconds: float) -> Kube:
        """A client with this timeout, without retries, without rate limit AND WITHOUT FENCE.

        For writing the Lease, and for authenticating the daemon's HTTP clients while it is a standby.
        """
        transport = Transport(self._connection, connect_timeout=seconds, read_timeout=seconds, attempts=1)
        return Kube(self._connection, transport=transport)

    def fenced(self, fence: Fence) -> Kube:
        """A client on the same connections that calls `fence` before each attempt of a write."""
        fenced = copy.copy(self)
        fenced._transport = self._transport.fenced(fence)
        return fenced

    def hearing(self, hear: Callable[[str], None]) -> Kube:
        """A client on the same connections that passes on what the API server warns of, such as admission policies."""
        hearing = copy.copy(self)
        hearing._transport = self._transport.hearing(hear)
        return hearing

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._transport.server

    def token(self) -> str | None:
        """The bearer token that requests carry now, A SECRET; None where a client certificate or nothing does."""
        return None if self._connection.token is None else self._connection.token()

    def certificate(self) -> bytes | None:
        """The client's certificate, PEM; None where a token or nothing identifies it."""
        return self._connection.certificate

    @property
    def namespace(self) -> str:
        """The namespace of objects that name none, by the kubeconfig's context or the service account."""
        return self._connection.namespace

    # ------------------------------------------------------------------------------------------------------- reads

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """The object. Raises `NotFoundError`."""
        return self._json("GET", resource.path(namespace, name))

    def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        keep: Callable[[Object], bool] | None = None,
    ) -> ObjectList:
        """All objects of one namespace or of all, read in consistent pages.

        `keep`: drop other objects page by page, so that they never are in memory together.
        """
        query = _selectors(label_selector, field_selector) | {"limit": str(PAGE)}
        path = resource.path(namespace)
        items: list[Object] = []
        while True:
            page = self._json("GET", path, query=query)
            if "items" not in page or "resourceVersion" not in (page.get("metadata") or {}):
                raise kube_errors.UnreachableError(f"GET {path}: the response of {self.server} is not a list")
            items.extend(filter(keep, page["items"] or []) if keep else page["items"] or [])
            if not (token := page["metadata"].get("continue")):
                break
            query["continue"] = token
        for item in items:  # The API omits both fields in the items of a list.
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        return ObjectList(items, page["metadata"]["resourceVersion"])

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        stop: threading.Event | None = None,
    ) -> Watch:
        """The events after `resource_version`, including bookmarks. Does not reconnect: use `Informer` for that."""
        seconds = random.randint(WATCH_SECONDS, 2 * WATCH_SECONDS)
        query = _selectors(label_selector, field_selector) | {
            "watch": "true",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        asked = f"WATCH {resource.path(namespace)}"
        response = self._transport.stream(resource.path(namespace), query, asked, read_timeout=WATCH_SILENCE)
        return Watch(response, asked, stop)

    def resource(self, api_version: str, kind: str) -> Resource:
        """The resource of `kind`, by cached discovery. Raises `NotFoundError` if the server does not serve it."""
        with self._discovery_lock:
            known = self._discovered.get(api_version, {})
            if kind not in known:  # Discover again on each miss: a CRD may be new.
                known = self._discover(api_version)
                self._discovered[api_version] = known
        if kind not in known:
            raise kube_errors.NotFoundError(
                404, "NotFound", f"{self.server} has no kind {kind!r} in {api_version} (available: {', '.join(known)})"
            )
        return known[kind]

    def version(self) -> dict[str, str]:
        """The server's version from `/version` (`gitVersion`, `major`, `minor`, …)."""
        return self._json("GET", "/version")

    # ------------------------------------------------------------------------------------------------------ writes

    def create(
        self,
        resource: Resource,
        obj: Object,
        namespace: str | None = None,
        *,
        name: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Object:
        """Create the object and return it as stored. Raises `AlreadyExistsError`.

        `strict`: unknown fields are an error, as for kubectl, instead of being dropped.
        `name` and `subresource` post to an object's subresource: `serviceaccounts/NAME/token`, `pods/NAME/eviction`.
        """
        namespace = namespace or obj.get("metadata", {}).get("namespace")
        path = resource.path(namespace, name, subresource)
        return self._json("POST", path, query=_write_query(dry_run, field_manager, strict), body=obj)

    def replace(
        self,
        resource: Resource,
        obj: Object,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Object:
        """Replace the object, raising `ConflictError` if it has changed. Requires resourceVersion for that.

        WITHOUT resourceVersion, IT OVERWRITES CHANGES MADE BY OTHERS. `strict`: see `create`.
        """
        path = resource.path(namespace(obj), name(obj), subresource)
        return self._json("PUT", path, query=_write_query(dry_run, strict=strict), body=obj)

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        type: PatchType,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Patch the object and return it as stored.

        `PatchType.APPLY` (server-side apply) requires `field_manager`; `force` takes over fields of other managers.
        """
        if type is PatchType.APPLY and not field_manager:
            raise ValueError("server-side apply requires field_manager")
        query = _write_query(dry_run, field_manager)
        if force:
            query["force"] = "true"
        path = resource.path(namespace, name, subresource)
        return self._json("PATCH", path, query=query, body=patch, content_type=type.value)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete the object. Raises `NotFoundError`, and `ConflictError` if `uid` or `resource_version` differs.

        `propagation`: Foreground, Background or Orphan. Finalizers may delay the deletion.
        """
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid or resource_version:
            preconditions = {"uid": uid, "resourceVersion": resource_version}
            options["preconditions"] = {k: v for k, v in preconditions.items() if v}
        if propagation:
            options["propagationPolicy"] = propagation
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        self._json("DELETE", resource.path(namespace, name), query=_write_query(dry_run), body=options)

    # ---------------------------------------------------------------------------------------------------- plumbing

    def raw(self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None) -> bytes:
        """Request any path (`/readyz`, a pod's `log`) and return the response body."""
        return bytes(self._transport.send(method, path, query=query, body=body).data)

    def close(self) -> None:
        """Close idle connections. To end a watch, use `Watch.close`."""
        self._transport.close()

    def _discover(self, api_version: str) -> dict[str, Resource]:
        group, _, version = api_version.rpartition("/")
        try:
            answer = self._json("GET", f"/apis/{api_version}" if group else f"/api/{version}")
        except kube_errors.NotServedError:
            # Only the API server's own list of groups proves that it does not have this one.
            groups = self._json("GET", "/apis")["groups"]
            if any(each["groupVersion"] == api_version for of in groups for each in of["versions"]):
                raise
            return {}
        return {
            found["kind"]: Resource(group, version, found["name"], found["kind"], found["namespaced"])
            for found in answer["resources"]
            if "/" not in found["name"]
        }

    def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        response = self._transport.send(method, path, query=query, body=body, content_type=content_type)
        try:
            answer = orjson.loads(response.data)
        except orjson.JSONDecodeError as error:
            raise kube_errors.UnreachableError(f"{method} {path}: the response of {self.server} is not JSON") from error
        if not isinstance(answer, dict):
            raise kube_errors.UnreachableError(f"{method} {path}: the response of {self.server} is not a JSON object")
        return answer


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    query = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in query.items() if value}


def _write_query(dry_run: bool, field_manager: str | None = None, strict: bool = False) -> dict[str, str]:
    query = {}
    if strict:
        query["fieldValidation"] = "Strict"
    if dry_run:
        query["dryRun"] = "All"
    if field_manager:
        query["fieldManager"] = field_manager
    return query

"""Saves what a cloud's load balancers have read in a ConfigMap, so that a restart need not read it again.

Only for clouds that return details one load balancer at a time (`Remembering`). The checkpoint is emptied before the
first change of the cloud and saved again once the controller is idle: it is either correct or empty. Even if it seems
empty, it is written, so that a late write of a previous leader fails (resourceVersion). If it is lost, damaged, of
another cluster or of another version, everything is read from the cloud.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from cloud_controller.cloud import Cloud
from cloud_controller.kube import (
    CONFIG_MAPS,
    ApiError,
    ConflictError,
    ForbiddenError,
    KubeApi,
    NotFoundError,
    Object,
)
from cloud_controller.load_balancers.operations import Remembering
from cloud_controller.rbac import CHECKPOINT_NAME, LEASE_NAMESPACE

LIMIT = 900_000
"""Maximum bytes of a dump: a ConfigMap may hold 1 MiB, before base64."""

_VERSION = "1"
_KEY = "load-balancers"
_WRITE = "cloud-controller/write"
_METADATA = {"name": CHECKPOINT_NAME, "namespace": LEASE_NAMESPACE}

_log = logging.getLogger(__name__)


def checkpoint_of(kube: KubeApi, cloud: Cloud) -> Checkpoint | None:
    """The cloud's checkpoint; None if the cloud has nothing to save."""
    remembering = cloud.load_balancers
    return Checkpoint(kube, cloud.cluster_id, remembering) if isinstance(remembering, Remembering) else None


@contextmanager
def without_checkpoint(kube: KubeApi, cloud: Cloud) -> Iterator[None]:
    """Hold while changing the cloud without saving it: empties any checkpoint first. Raises ApiError."""
    if isinstance(cloud.load_balancers, Remembering):
        with suppress(NotFoundError):
            # A replace without resourceVersion is unconditional, and the daemon's permissions allow it.
            kube.replace(CONFIG_MAPS, _config_map(_METADATA))
    yield


class Checkpoint:
    """One process's view of the checkpoint. Thread-safe."""

    def __init__(self, kube: KubeApi, cluster_id: str, remembering: Remembering) -> None:
        self._kube = kube
        self._cluster_id = cluster_id
        self._remembering = remembering
        self._lock = threading.Lock()
        self._present: Object | None = None
        self._full = False
        """Whether the ConfigMap may have content."""
        self._emptied = False
        """Whether this process has emptied it since the last save."""
        self._digest = ""
        self._writers = 0
        self._disabled = False

    def restore(self) -> None:
        """Restore the saved state into the cloud's load balancers, if it is intact and belongs to this cluster."""
        with self._lock:
            try:
                self._find()
            except ApiError as error:
                # Without read permission this controller never wrote it. After other errors it may have content.
                self._full = not isinstance(error, ForbiddenError)
                self._disable(error)
                return
            kept = self._kept()
            if kept is None:
                return
            try:
                self._remembering.restore(kept)
            except ValueError as error:
                _log.warning("checkpoint ignored: %s", error)
                return
            self._digest = _digest(kept)
            _log.info("checkpoint restored bytes=%d", len(kept))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold while changing the cloud. Empties the checkpoint first; raises ApiError if that fails."""
        with self._lock:
            if not self._emptied:
                self._empty()
            self._writers += 1
        try:
            yield
        finally:
            with self._lock:
                self._writers -= 1

    def save(self) -> bool:
        """Save the present state if it has changed; return False while the cloud is being changed."""
        with self._lock:
            if self._disabled:
                return True
            if self._writers:
                return False
            memory = self._remembering.dump(LIMIT)
            if self._full and _digest(memory) == self._digest:
                return True
            try:
                self._store(memory)
            except ApiError as error:
                # Another process wrote it, or this one lacks the permission: leave it alone from now on.
                self._disable(error)
                return True
            _log.info("checkpoint saved bytes=%d", len(memory))
            return True

    # ----------------------------------------------------------------------------------------------------- helpers

    def _find(self) -> None:
        try:
            self._present = self._kube.get(CONFIG_MAPS, CHECKPOINT_NAME, LEASE_NAMESPACE)
        except NotFoundError:
            self._present = None
        self._full = bool(self._present and self._present.get("binaryData"))

    def _kept(self) -> bytes | None:
        if self._present is None or not self._full:
            return None
        if self._present.get("data") != self._data:
            _log.info("checkpoint ignored: it belongs to %s", self._present.get("data"))
            return None
        try:
            return base64.b64decode(self._present["binaryData"].get(_KEY, ""), validate=True)
        except binascii.Error as error:
            _log.warning("checkpoint ignored: %s", error)
            return None

    @property
    def _data(self) -> dict[str, str]:
        return {"version": _VERSION, "cluster": self._cluster_id}

    def _empty(self) -> None:
        try:
            self._write({})
        except ConflictError:
            self._find()
            self._write({})
            self._disabled = True
        except NotFoundError:
            self._present = None
        except ApiError as error:
            if self._full:
                raise
            self._disable(error)
        self._full, self._emptied = False, True

    def _store(self, memory: bytes) -> None:
        before = self._full, self._emptied
        # A write whose response is lost may have succeeded.
        self._full, self._emptied = True, False
        try:
            self._write({_KEY: base64.b64encode(memory).decode()})
        except NotFoundError:  # Somebody deleted it.
            self._present = None
            self._write({_KEY: base64.b64encode(memory).decode()})
        except ForbiddenError:
            self._full, self._emptied = before
            raise
        self._digest = _digest(memory)

    def _write(self, content: dict[str, str]) -> None:
        filled = {"data": self._data, "binaryData": content}
        if self._present is None:
            self._present = self._kube.create(CONFIG_MAPS, _config_map(_METADATA) | filled)
        else:
            # With the resourceVersion, the write fails if another process has written since.
            version = {"resourceVersion": self._present["metadata"]["resourceVersion"]}
            self._present = self._kube.replace(CONFIG_MAPS, _config_map(_METADATA | version) | filled)

    def _disable(self, error: ApiError) -> None:
        _log.warning("checkpoint disabled: %s", error)
        self._disabled = True


def _config_map(metadata: Mapping[str, str]) -> Object:
    # The API server gives a new version only to what changes: without the mark, emptying it twice would leave a process
    # that led before the right to write.
    mark = {"annotations": {_WRITE: uuid.uuid4().hex}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, **mark}}


def _digest(memory: bytes) -> str:
    return hashlib.sha256(memory).hexdigest()

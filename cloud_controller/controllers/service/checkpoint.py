"""What a cloud's load balancers remember, kept in the cluster so that a restart need not ask for it again.

Only for clouds that tell details one by one (`Remembering`). The checkpoint is emptied before the first change of the
cloud that it does not know of, and written again at rest: what it holds is true, or it is not there. It is emptied by a
write also where it seems empty, so that what a process that led before still writes is refused (resourceVersion). Lost,
damaged, another cluster's or another version's: everything is read as if there were none.
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
"""Bytes of a memory that are kept at most: a ConfigMap may hold a mebibyte, before base64."""

_VERSION = "1"
_KEY = "load-balancers"
_WRITE = "cloud-controller/write"
_METADATA = {"name": CHECKPOINT_NAME, "namespace": LEASE_NAMESPACE}

_log = logging.getLogger(__name__)


def checkpoint_of(kube: KubeApi, cloud: Cloud) -> Checkpoint | None:
    """The cloud's checkpoint; None where the cloud has nothing to keep."""
    remembering = cloud.load_balancers
    return Checkpoint(kube, cloud.cluster_id, remembering) if isinstance(remembering, Remembering) else None


def forget(kube: KubeApi) -> None:
    """Empty the checkpoint, wherever it is from: the cloud is about to be changed past it. Raises ApiError."""
    with suppress(NotFoundError):
        # Without a version, it goes over whatever stands there; and the daemon's rights are enough for it.
        kube.replace(CONFIG_MAPS, _config_map(_METADATA))


class Checkpoint:
    """The one ConfigMap, as one process keeps it. Safe to use from any thread."""

    def __init__(self, kube: KubeApi, cluster_id: str, remembering: Remembering) -> None:
        self._kube = kube
        self._cluster_id = cluster_id
        self._remembering = remembering
        self._lock = threading.Lock()
        self._present: Object | None = None
        self._full = False
        """Whether it may hold something."""
        self._emptied = False
        """Whether this process has emptied it since it was last written."""
        self._digest = ""
        self._writers = 0
        self._given_up = False

    def take_up(self) -> None:
        """Give the cloud's load balancers back what they remembered, where that is whole and ours."""
        with self._lock:
            try:
                self._find()
            except ApiError as error:
                # Who may not even read it has never written one; else it may hold anything.
                self._full = not isinstance(error, ForbiddenError)
                self._give_up(error)
                return
            kept = self._kept()
            if kept is None:
                return
            try:
                self._remembering.restore(kept)
            except ValueError as error:
                _log.warning("checkpoint not taken up: %s", error)
                return
            self._digest = _digest(kept)
            _log.info("checkpoint taken up bytes=%d", len(kept))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """While the cloud is being changed. Raises ApiError, before anything is changed, where it can't be emptied."""
        with self._lock:
            if not self._emptied:
                self._empty()
            self._writers += 1
        try:
            yield
        finally:
            with self._lock:
                self._writers -= 1

    def keep(self) -> bool:
        """Write what is remembered now, unless it stands there; False while the cloud is being changed."""
        with self._lock:
            if self._given_up:
                return True
            if self._writers:
                return False
            memory = self._remembering.dump(LIMIT)
            if self._full and _digest(memory) == self._digest:
                return True
            try:
                self._store(memory)
            except ApiError as error:
                # Another wrote it, or it may not be written: then what it holds is for others to say.
                self._give_up(error)
                return True
            _log.info("checkpoint written bytes=%d", len(memory))
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
            _log.info("checkpoint not taken up: it is of %s", self._present.get("data"))
            return None
        try:
            return base64.b64decode(self._present["binaryData"].get(_KEY, ""), validate=True)
        except binascii.Error as error:
            _log.warning("checkpoint not taken up: %s", error)
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
            self._given_up = True
        except NotFoundError:
            self._present = None
        except ApiError as error:
            if self._full:
                raise
            self._give_up(error)
        self._full, self._emptied = False, True

    def _store(self, memory: bytes) -> None:
        before = self._full, self._emptied
        # A write whose answer is lost may have been done.
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
            # With the version, it is refused where another has written since.
            version = {"resourceVersion": self._present["metadata"]["resourceVersion"]}
            self._present = self._kube.replace(CONFIG_MAPS, _config_map(_METADATA | version) | filled)

    def _give_up(self, error: ApiError) -> None:
        _log.warning("no checkpoint is kept: %s", error)
        self._given_up = True


def _config_map(metadata: Mapping[str, str]) -> Object:
    # The API server gives a new version only to what changes: without the mark, emptying it twice would leave a process
    # that led before the right to write.
    mark = {"annotations": {_WRITE: uuid.uuid4().hex}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, **mark}}


def _digest(memory: bytes) -> str:
    return hashlib.sha256(memory).hexdigest()

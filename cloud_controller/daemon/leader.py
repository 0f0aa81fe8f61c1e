"""Leader election: one of several processes works, the holder of a Lease.

As in upstream, a process may take a lease that it has seen unrenewed for `lease_duration` seconds; clocks of different
machines are never compared. The holder stops by itself after `renew_deadline`: every write calls `LeaderElector.fence`
first.
"""

from __future__ import annotations

import logging
import math
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.fence import WriteRefused
from cloud_controller.kube import LEASES, ApiError, ConflictError, KubeApi, NotFoundError, Object

_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""On Linux, CLOCK_MONOTONIC (`time.monotonic`) stops while the machine is suspended, but the lease expires meanwhile.
CLOCK_BOOTTIME keeps running, and so does CLOCK_MONOTONIC on systems without it (macOS). Both run while only the process
is stopped."""

_log = logging.getLogger(__name__)


def since_boot() -> float:
    """Seconds since boot, including those in which the machine was suspended."""
    return time.clock_gettime(_CLOCK)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds. A holder renews every `retry_period` and gives up after failing for `renew_deadline`."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline > self.retry_period > 0:
            raise InvalidConfiguration(
                "leader election",
                f"inconsistent times: {self.lease_duration:g}, {self.renew_deadline:g} and {self.retry_period:g} s",
                "lease duration > renew deadline > retry period > 0",
            )


class LeaderElector:
    """One candidate for one Lease."""

    def __init__(
        self,
        kube: KubeApi,
        namespace: str,
        name: str,
        *,
        identity: str | None = None,
        times: LeaseTimes | None = None,
        clock: Callable[[], float] = since_boot,
    ) -> None:
        # In a container, HOSTNAME is the pod's name, or the machine's on the host network.
        self.identity = identity or f"{os.environ.get('HOSTNAME') or socket.gethostname()}_{uuid.uuid4()}"
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._lease = f"{namespace}/{name}"
        self._times = times or LeaseTimes()
        self._clock = clock
        self.holder = ""
        """The holder when the lease was last read."""
        self.trouble: str | None = None
        """Why the last attempt to acquire the lease failed, or None."""
        self._seen: tuple[Any, ...] | None = None
        self._runs_until = -math.inf
        """By this clock, when what was seen of the lease runs out."""
        self._renewed_at = -math.inf
        """When the last successful renewal began. Not when it ended: other processes count from the write itself."""

    def acquire(self, stop: threading.Event, within: float = math.inf) -> bool:
        """Wait until this process holds the lease. False if `stop` is set first, or after `within` seconds."""
        end = self._clock() + within
        _log.info("waiting for lease=%s identity=%s", self._lease, self.identity)
        while not stop.is_set() and self._clock() < end:
            try:
                leads, self.trouble = self.try_once(), None
                if leads:
                    _log.info("leading lease=%s identity=%s", self._lease, self.identity)
                    return True
            except ApiError as error:
                self.trouble = str(error)
                _log.warning("lease not accessible error=%r", str(error))
            stop.wait(self._times.retry_period * random.uniform(1.0, 1.2))
        return False

    @property
    def patience(self) -> float:
        """Seconds after which a lease that is not renewed has certainly expired."""
        return self._times.lease_duration + 2 * self._times.retry_period

    def hold(self, stop: threading.Event) -> bool:
        """Renew the lease until `stop` is set (True) or it is lost (False). AFTER FALSE, NOTHING MAY BE WRITTEN."""
        while not stop.wait(self._times.retry_period):
            # Never renew an overdue lease: another process may have led meanwhile, and the caches of this one may be
            # stale.
            if not self.overdue():
                try:
                    if not self.try_once(renew=True):
                        return self._lost("another process holds it")
                except ApiError as error:
                    _log.warning("lease not renewed error=%r", str(error))
            if self.overdue():
                return self._lost("not renewed in time")
        return True

    def overdue(self) -> bool:
        """Whether the lease has not been renewed for `renew_deadline`, even while a call of `hold` is blocked."""
        return self._clock() - self._renewed_at >= self._times.renew_deadline

    def fence(self) -> None:
        """See `Fence`. Raises unless this process holds the lease by its own clock."""
        if self.overdue():
            raise WriteRefused(f"lease {self._lease} is overdue and may belong to another process; write not sent")

    def release(self) -> None:
        """Release the lease if this process holds it, so that another need not wait for it to expire."""
        self._renewed_at = -math.inf
        try:
            lease = self._kube.get(LEASES, self._name, self._namespace)
            if lease["spec"].get("holderIdentity") == self.identity:
                self._kube.replace(
                    LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}}
                )
                _log.info("released lease=%s", self._lease)
        except ApiError as error:
            _log.warning("lease not released error=%r", str(error))

    def try_once(self, *, renew: bool = False) -> bool:
        """Try to acquire or renew the lease (`renew`: only renew); return whether this process holds it.

        Raises `ApiError`.
        """
        began = self._clock()
        leads = self._write(renew)
        if leads:
            self._renewed_at = began
        return leads

    def _write(self, renew: bool) -> bool:
        now = _micro_time()
        lease: Object | None
        try:
            lease = self._kube.get(LEASES, self._name, self._namespace)
        except NotFoundError:
            lease = None
        # Somebody deleted it (`confirm` may have made an empty one since), but its holder may write until it notices.
        is_new = lease is None or not lease["spec"].get("acquireTime")
        if is_new and self.holder not in ("", self.identity) and self._clock() < self._runs_until:
            return False
        if lease is None:
            metadata = {"name": self._name, "namespace": self._namespace}
            spec = self._spec(now, acquired=now, transitions=0)
            try:
                self._kube.create(
                    LEASES,
                    {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec},
                )
            except ConflictError:  # Another process was faster.
                return False
            return True
        held = lease["spec"]
        holder = self.holder = held.get("holderIdentity") or ""
        if holder != self.identity and (renew or (holder and not self._ran_out(lease))):
            return False
        transitions = int(held.get("leaseTransitions") or 0)
        if holder == self.identity:
            spec = self._spec(now, acquired=held.get("acquireTime") or now, transitions=transitions)
        else:
            spec = self._spec(now, acquired=now, transitions=transitions + 1)
        try:
            self._kube.replace(LEASES, {**lease, "spec": spec})
        except ConflictError:
            # Another process took it, or an annotation was written meanwhile (`confirm`). Only a write renews.
            return holder == self.identity and self._write(renew)
        return True

    def _lost(self, why: str) -> bool:
        self._renewed_at = -math.inf
        _log.error("lease lost lease=%s why=%r", self._lease, why)
        return False

    def _ran_out(self, lease: Object) -> bool:
        held = lease["spec"]
        duration = float(held.get("leaseDurationSeconds") or self._times.lease_duration)
        seen = (held.get("holderIdentity"), held.get("renewTime"), held.get("leaseTransitions"), duration)
        if seen != self._seen:
            self._seen = seen
            self._runs_until = self._clock() + duration
        return self._clock() >= self._runs_until

    def _spec(self, now: str, *, acquired: str, transitions: int) -> dict[str, Any]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._times.lease_duration),
            "acquireTime": acquired,
            "renewTime": now,
            "leaseTransitions": transitions,
        }


def _micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

"""Which of several instances works: whoever holds the Lease, renewed while it lives, given back when it ends.

As upstream's leader election: a lease that its holder has not renewed for `lease_duration` seconds, as this process saw
it, may be taken; the clocks of different machines are never compared. The holder itself stops after `renew_deadline`:
`LeaderElector.fence` is asked before each write.
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
"""CLOCK_MONOTONIC (`time.monotonic`) stands still on Linux while the machine is suspended, and the lease runs out
meanwhile. CLOCK_BOOTTIME goes on; systems without it (macOS) have a CLOCK_MONOTONIC that does. Both go on while the
process alone is stopped."""

_log = logging.getLogger(__name__)


def since_boot() -> float:
    """Seconds, those in which the machine was suspended included."""
    return time.clock_gettime(_CLOCK)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds. A holder renews every `retry_period` and gives up when it could not for `renew_deadline`."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline > self.retry_period > 0:
            raise InvalidConfiguration(
                "leader election",
                f"{self.lease_duration:g}, {self.renew_deadline:g} and {self.retry_period:g} s do not go together",
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
        # What runs containers tells them their host's name: on the host's network, it is the machine's.
        self.identity = identity or f"{os.environ.get('HOSTNAME') or socket.gethostname()}_{uuid.uuid4()}"
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._lease = f"{namespace}/{name}"
        self._times = times or LeaseTimes()
        self._clock = clock
        self.holder = ""
        """Who held the lease when it was last asked for."""
        self.trouble: str | None = None
        """Why the lease could not be asked for the last time, or None."""
        self._seen: tuple[Any, ...] | None = None
        self._seen_at = 0.0
        self._renewed_at = -math.inf
        """When the last renewal that succeeded began: others count from the write, which the answer may follow late."""

    def acquire(self, stop: threading.Event, within: float = math.inf) -> bool:
        """Wait until the lease is ours; False if `stop` was set before, or so many seconds have passed."""
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
                _log.warning("lease not reached error=%r", str(error))
            stop.wait(self._times.retry_period * random.uniform(1.0, 1.2))
        return False

    @property
    def patience(self) -> float:
        """Seconds after which a lease that nobody renews is certainly free."""
        return self._times.lease_duration + 2 * self._times.retry_period

    def hold(self, stop: threading.Event) -> bool:
        """Renew the lease until `stop` is set (True), or until it is lost (False): then nothing may be written."""
        while not stop.wait(self._times.retry_period):
            # A lease that was overdue is not renewed: another may have led and ended meanwhile, and what this process
            # knows of cloud and cluster is from before.
            if not self.overdue():
                try:
                    if not self.try_once(renew=True):
                        return self._lost("another holds it")
                except ApiError as error:
                    _log.warning("lease not renewed error=%r", str(error))
            if self.overdue():
                return self._lost("not renewed in time")
        return True

    def overdue(self) -> bool:
        """Whether the lease was not renewed for `renew_deadline`; also while a call of `hold` still waits."""
        return self._clock() - self._renewed_at >= self._times.renew_deadline

    def fence(self) -> None:
        """See `Fence`: raises unless the lease is ours, by the clock of this process."""
        if self.overdue():
            raise WriteRefused(f"the lease {self._lease} may belong to another process: nothing more is written")

    def release(self) -> None:
        """Give the lease back, if it is ours, so that another need not wait for it to run out."""
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
        """Take or renew the lease if that is possible now (`renew`: only renew it); whether it is ours.

        Raises `ApiError`.
        """
        began = self._clock()
        leads = self._write(renew)
        if leads:
            self._renewed_at = began
        return leads

    def _write(self, renew: bool) -> bool:
        now = _micro_time()
        try:
            lease = self._kube.get(LEASES, self._name, self._namespace)
        except NotFoundError:
            metadata = {"name": self._name, "namespace": self._namespace}
            spec = self._spec(now, acquired=now, transitions=0)
            try:
                self._kube.create(
                    LEASES,
                    {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec},
                )
            except ConflictError:  # Another was quicker.
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
            # Another took it, or somebody wrote an annotation of ours: the renewal counts only once it is written.
            return holder == self.identity and self._write(renew)
        return True

    def _lost(self, why: str) -> bool:
        self._renewed_at = -math.inf
        _log.error("lease lost lease=%s why=%r", self._lease, why)
        return False

    def _ran_out(self, lease: Object) -> bool:
        held = lease["spec"]
        seen = (held.get("holderIdentity"), held.get("renewTime"), held.get("leaseTransitions"))
        if seen != self._seen:
            self._seen = seen
            self._seen_at = self._clock()
        duration = float(held.get("leaseDurationSeconds") or self._times.lease_duration)
        return self._clock() - self._seen_at >= duration

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

"""The process of a site's API: started on a block of addresses, checked for health, replaced, stopped."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from local import processes
from local.addresses import API_PORT, AddressBlock
from local.errors import SiteError
from local.http_client import HttpError, request
from local.ports import require_free
from local.processes import Process, ProcessError
from local.state_folder import StateFolder, endpoint
from local.waiting import wait_until

API: Final = "api"

HEALTHY_SECONDS = 300.0
"""How long an API may take to start; one that ends is noticed at once.

One of several services takes a processor for twenty seconds, which are minutes beside a run of all tests.
"""

STOP_GRACE_SECONDS = 10.0
PROBE_SECONDS = 2.0

# Servers and their pods get no passphrase, token or cloud credential from the environment.
_ENVIRONMENT: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "TZ", "KUBEBUILDER_ASSETS"}
    | {"XDG_CACHE_HOME", "XDG_STATE_HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "VIRTUAL_ENV"}
)


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that the site's servers get: nothing that could be a secret."""
    return {name: value for name, value in environment.items() if name in _ENVIRONMENT}


@dataclass(frozen=True, slots=True)
class ApiProcess:
    """The API of the site in one folder. Holds no state; the process is found by its record."""

    folder: StateFolder
    title: str
    """For messages."""
    module: str
    """What Python runs, with the site's folder as its argument."""
    more_ports: Mapping[int, str]
    """The ports beside API_PORT on which it listens, and their purpose."""

    def start(self, block: AddressBlock) -> None:
        """Start the API and return once it answers.

        Raises PortBusyError if another process listens on the block's address, before the start or during it.
        """
        self._require_free(block)
        try:
            process = processes.start(
                self.title,
                # -P: never import from the working directory.
                [sys.executable, "-P", "-m", self.module, str(self.folder.root)],
                record=self.folder.process_record(API),
                log=self.folder.log(API),
                env=server_environment(os.environ),
                cwd=self.folder.cloud,
            )
        except ProcessError as error:
            raise SiteError(str(error)) from error
        if self.health(process, endpoint(block), HEALTHY_SECONDS):
            return
        ended = not process.is_running()
        tail = process.log_tail()
        self.stop()
        self._require_free(block)
        what = "ended" if ended else f"did not answer within {HEALTHY_SECONDS:g} s"
        raise SiteError(f"{self.title} {what}; the end of its log ({process.log}):\n{tail}")

    def stop(self) -> None:
        """End the API if it runs."""
        process = self.find()
        if process is not None:
            try:
                process.stop(STOP_GRACE_SECONDS)
            except ProcessError as error:
                raise SiteError(str(error)) from error

    def find(self, name: str = API) -> Process | None:
        """The API's process, or the one with this name that the API has started, if it runs. Raises SiteError."""
        try:
            return processes.find(self.folder.process_record(name))
        except ProcessError as error:
            raise SiteError(str(error)) from error

    def unfit(self, process: Process, url: str, revision: str) -> str | None:
        """Why a running API has to be replaced: no answer in time (it may just be starting), or older code."""
        health = self.health(process, url, STOP_GRACE_SECONDS)
        if not health:
            return f"has not answered for {STOP_GRACE_SECONDS:g} s"
        return None if health.get("revision") == revision else "runs code from before an update"

    def health(self, process: Process, url: str, seconds: float) -> dict[str, Any]:
        """What the site's own API reports; an API of another user on this address does not count.

        Waits at most `seconds`; empty if the API does not answer in time or ends.
        """
        site, health = self.folder.fingerprint(), dict[str, Any]()

        def answers() -> bool:
            nonlocal health
            health = _health(url)
            return health.get("site") == site

        wait_until(lambda: answers() or not process.is_running(), seconds)
        return health if health.get("site") == site else {}

    def _require_free(self, block: AddressBlock) -> None:
        for port, purpose in {API_PORT: self.title, **self.more_ports}.items():
            require_free(block.api_address, port, purpose)


def _health(url: str) -> dict[str, Any]:
    try:
        answer = request("GET", f"{url}/healthz", seconds=PROBE_SECONDS)
        return dict(answer.json()) if answer.status == 200 else {}
    except (HttpError, ValueError):
        return {}

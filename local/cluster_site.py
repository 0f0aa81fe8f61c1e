"""A site whose cloud has a cluster from its beginning, which stacks find as one that somebody else made.

Its API's process keeps the cluster running (`cluster_keeper`), and says at CONTENTS_PATH what the cloud holds: whether
the cluster is `ready`, its `machines`, `routes` and `load_balancers`, and what stacks have `left`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from local.api_process import HEALTHY_SECONDS
from local.api_site import ApiSite
from local.cluster_access import admin_kubeconfigs
from local.errors import SiteError
from local.http_client import HttpError, request
from local.status_text import render_site, section

HEALTH_PATH: Final = "/healthz"
CONTENTS_PATH: Final = "/site"
"""For the site alone, which shows its token in the header TOKEN_HEADER."""
TOKEN_HEADER: Final = "x-site-token"
_ANSWER_SECONDS: Final = HEALTHY_SECONDS
"""The API asks its services in turn, and after a start each loads for its first answer what it has not loaded yet."""


class ClusterSite(ApiSite):
    """The site of one stack."""

    CLUSTER_ID: ClassVar[str]
    KINDS: ClassVar[Iterable[str]]
    """What of a stack's may be left, for people."""
    EMPTY: ClassVar[str]
    """That nothing is left, for people."""
    STATUS_TITLE: ClassVar[str]
    BALANCER_COLUMN: ClassVar[str]
    """What a status shows of a load balancer after its name."""
    SIMULATED: ClassVar[str]
    """What does not work here."""

    def suspend(self) -> None:
        """Nothing to note: the next start boots the machines that the cloud says run."""

    def cluster_kubeconfig(self) -> str:
        """An administrator's: the cluster's own file, which stays the same, or stacks would update what it changes.

        Raises SiteError while the control plane has not started.
        """
        found: Path | None = admin_kubeconfigs(self.folder).get(self.CLUSTER_ID)
        if found is None:
            raise SiteError(f"the control plane of cluster {self.CLUSTER_ID} has not started yet")
        return found.read_text()

    def pending(self) -> list[str]:
        """The cluster, until its control plane and all machines run."""
        return [] if self._contents()["ready"] else [f"cluster {self.CLUSTER_ID}"]

    def crashed_machines(self) -> list[str]:
        """None: the API starts a machine again whose process ended."""
        return []

    def boot_crashed_machines(self) -> None:
        """There are none."""

    def end_simulated_machines(self) -> None:
        """There are none: every machine of the cluster is real."""

    def after_up(self, cluster: str) -> list[str]:
        """What does not work here."""
        del cluster
        return [self.SIMULATED]

    def left(self) -> list[str]:
        """What stacks left beside the cluster; empty for a stopped site. Raises SiteError."""
        return list(self._contents()["left"]) if self.is_running() else []

    def nothing_left(self) -> str | None:
        """The kinds that `left` looked for; None for a stopped site, where it did not look."""
        return f"{self.EMPTY}; checked: {', '.join(self.KINDS)}" if self.is_healthy() else None

    def objects(self, *, healthy: bool) -> dict[str, Any]:
        """The cloud's machines, routes and load balancers; none while it does not answer."""
        found = self._contents() if healthy else {}
        return {name: found[name] for name in ("machines", "routes", "load_balancers") if name in found}

    def render(self, status: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
        """The status as text."""
        machines = [[each["node_name"], each["state"], each["id"], each["zone"]] for each in status.get("machines", [])]
        routes = [[each["cidr"], each["node_name"] or "to no machine"] for each in status.get("routes", [])]
        balancers = [
            [each["name"], each[self.BALANCER_COLUMN], each["address"], ", ".join(each["listeners"]) or "no listener"]
            for each in status.get("load_balancers", [])
        ]
        return render_site(
            self.STATUS_TITLE,
            status,
            outputs,
            section("machines", machines),
            section("routes", routes),
            section("load balancers (simulated: they forward nothing)", balancers),
        )

    def _contents(self) -> dict[str, Any]:
        url, headers = f"{self.endpoint}{CONTENTS_PATH}", {TOKEN_HEADER: self.token}
        try:
            return dict(request("GET", url, headers=headers, seconds=_ANSWER_SECONDS).json())
        except (HttpError, ValueError) as error:
            raise SiteError(f"{self.API_TITLE} does not answer: {error}") from error

"""A real cluster on a real site of mycloud's, for managers that are killed again and again."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from cloud_controller.cloud import CloudError
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.clouds.mycloud.config import Config, render
from cloud_controller.controller_names import NAMES
from cloud_controller.kube import Kube
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.mycloud.site import Site
from tests.crash.control_plane import component
from tests.crash.daemon import PATIENCE, Daemon, Daemons, Json, until
from tests.crash.nodes import Nodes

__all__ = ["Environment", "Json", "Manager", "until"]


@dataclass(kw_only=True)
class Manager(Daemon):
    """A daemon of the environment's cluster."""

    environment: Environment


class Environment(Nodes):
    """One site with one cluster; etcd and the API server run, the other two components only when they are wanted.

    Nobody but the managers and the tests writes to the cluster then, so that the order of calls is theirs alone.
    """

    def __init__(self, state: Path) -> None:
        self.directory = state
        self.site = Site(state / "site")
        self.site.up()
        self.cloud = Client(self.site.endpoint, self.site.token)
        self.network = self._ready("networks", {"name": "n"})
        self.subnet = self._ready("subnets", {"name": "s", "network_id": self.network["id"], "zone": "zone-b"})
        self.cluster = self._ready("clusters", {"name": "c", "network_id": self.network["id"]})
        answer = self.cloud.get_path(f"clusters/{self.cluster['id']}/kubeconfig")
        super().__init__(Kube.from_kubeconfig(answer["kubeconfig"]), self.network["pod_cidr"])
        self.names = count(1)
        self._daemons = Daemons(
            state,
            answer["kubeconfig"],
            cloud_name="mycloud",
            cloud=self.site.endpoint,
            cluster_cidr=self.network["pod_cidr"],
            controllers=NAMES,
        )
        self.pause("kube-controller-manager", "kube-scheduler")

    def down(self) -> None:
        """End everything."""
        self.resume("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
        self.site.down()

    # ---------------------------------------------------------------------------------------------------- processes

    @property
    def control_plane(self) -> Path:
        """The folder of the cluster's control plane."""
        return self.site.folder.cluster(self.cluster["id"])

    def pause(self, *components: str) -> None:
        """SIGSTOP."""
        for name in components:
            component(self.control_plane, name).signal(signal.SIGSTOP)

    def resume(self, *components: str) -> None:
        """SIGCONT."""
        for name in components:
            component(self.control_plane, name).signal(signal.SIGCONT)

    def wait_healed(self) -> None:
        """Wait until the site calls its cluster healthy, which it asks all four components about."""
        if self.cloud.get("clusters", self.cluster["id"])["state"] == "available":
            return
        self.resume("kube-controller-manager", "kube-scheduler")
        self.cloud.wait_for_state("clusters", self.cluster["id"], ["available"], PATIENCE)
        self.pause("kube-controller-manager", "kube-scheduler")

    @contextlib.contextmanager
    def manager(self, name: str, *flags: str, prelude: str = "", token: str | None = None) -> Iterator[Manager]:
        """A manager that is not started yet, and its proxies; killed at the end."""

        def config(url: str) -> str:
            return render(Config(url, token or self.site.token, self.cluster["id"]))

        make = partial(Manager, environment=self)
        with self._daemons.daemon(make, name, *flags, cloud_config=config, prelude=prelude) as made:
            yield made

    # ------------------------------------------------------------------------------------------------------ objects

    def machine(self) -> Json:
        """A running machine of the cluster without a process of its own."""
        prefix = f"m{next(self.names)}-"
        body = {
            "cluster_id": self.cluster["id"],
            "subnet_ids": [self.subnet["id"]],
            "count": 1,
            "name_prefix": prefix,
            "tags": {CLUSTER_TAG: self.cluster["id"]},
        }
        self.cloud.post("admin/machines", body)
        name = f"{prefix}00000"

        def listed() -> list[Json]:
            # The cloud's faults meet the test's calls too, and half of all calls throttled is more than a client bears.
            with contextlib.suppress(CloudError):
                return self.cloud.list("machines", name=name)
            return []

        return until(listed, "the machine is listed")[0]

    def terminate(self, machine: Json) -> None:
        """End the machine; its node is not ready afterwards."""
        self.cloud.delete("machines", machine["id"])
        self.report(machine["name"], "Unknown")

    def load_balancers(self) -> list[Json]:
        """All of the account."""
        return self.cloud.list("load_balancers")

    def routes(self) -> list[Json]:
        """The whole table."""
        return self.cloud.list(f"route_tables/{self.network['route_table_id']}/routes")

    # ------------------------------------------------------------------------------------------------------ helpers

    def _ready(self, collection: str, body: Json) -> Json:
        made = self.cloud.create(collection, body)
        return self.cloud.wait_for_state(collection, made["id"], ["available"], PATIENCE)

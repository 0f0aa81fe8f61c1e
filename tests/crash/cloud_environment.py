"""A real API server and a simulated cloud, for daemons that are killed again and again.

No kubelet runs on the cloud's machines, and its load balancers forward nothing. What the clouds' environments share.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from cloud_controller.kube import Kube
from local.control_plane.control_plane import ControlPlane
from tests.crash.daemon import Daemon, Daemons, Json
from tests.crash.nodes import Nodes
from tests.crash.proxy import Mending, Naming, as_it_is

CONTROLLERS = ("node", "node-lifecycle", "service", "route")
CLUSTER_CIDR = "10.1.0.0/16"

_LIFETIME = timedelta(hours=6)


class Machine(Protocol):
    """One that a kubelet would run on, as a node called `name`."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def provider_id(self) -> str | None: ...


KindName = Literal["classic", "network"]


@dataclass(frozen=True)
class Kind:
    """What Services for this kind of load balancer have: annotations without their prefix, and fields of the spec."""

    settings: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, str] = field(default_factory=dict)


class CloudEnvironment(Nodes, ABC):
    """One cluster on one account."""

    prefix: ClassVar[str]
    """Of the annotations that people set."""
    kinds: ClassVar[Mapping[KindName, Kind]]

    def __init__(
        self,
        control_plane: ControlPlane,
        directory: Path,
        *,
        cloud_name: str,
        endpoint: str,
        naming: Naming,
        mending: Mending = as_it_is,
    ) -> None:
        kubeconfig = control_plane.kubeconfig("crash-test", ["system:masters"], _LIFETIME)
        super().__init__(Kube.from_kubeconfig(kubeconfig), CLUSTER_CIDR)
        self.control_plane = control_plane
        self.names = count(1)
        self._daemons = Daemons(
            directory,
            kubeconfig,
            cloud_name=cloud_name,
            cloud=endpoint,
            cluster_cidr=CLUSTER_CIDR,
            controllers=CONTROLLERS,
            naming=naming,
            mending=mending,
        )

    @contextlib.contextmanager
    def daemon(self, name: str, *flags: str, prelude: str = "") -> Iterator[Daemon]:
        """A daemon that is not started yet, and its proxies; killed at the end."""
        controllers = f"--controllers={','.join(CONTROLLERS)}"
        with self._daemons.daemon(
            Daemon,
            name,
            controllers,
            *flags,
            cloud_config=self.cloud_config,
            prelude=prelude,
            variables=self.variables(),
        ) as made:
            yield made

    @abstractmethod
    def cloud_config(self, endpoint: str) -> str:
        """For a daemon that finds the cloud there."""

    def variables(self) -> Mapping[str, str]:
        """What the environment of a daemon has besides."""
        return {}

    @abstractmethod
    def machine(self) -> Machine:
        """A new running machine of the cluster."""

    @abstractmethod
    def end_machine(self, machine: Machine) -> None:
        """End it, or nothing if it has ended."""

    def terminate(self, machine: Machine) -> None:
        """End the machine; its node is not ready afterwards."""
        self.end_machine(machine)
        self.report(machine.name, "Unknown")

    @abstractmethod
    def routes(self) -> Mapping[str, str]:
        """The pod routes: the machine of each range."""

    @abstractmethod
    def left(self) -> Json:
        """All that there is of load balancing; only empty values if there is nothing."""

    @abstractmethod
    def remove_load_balancing(self) -> None:
        """What a daemon that is dead has left."""

    @abstractmethod
    def remove_routes(self) -> None:
        """The pod routes that a daemon that is dead has left."""

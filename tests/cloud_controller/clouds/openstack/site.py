"""A project of the real services as one test has it: servers on a network behind a router, and clouds that see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from cloud_controller.clouds.openstack.cloud import OpenStack
from cloud_controller.clouds.openstack.config import Config
from cloud_controller.clouds.openstack.credentials import Named, Password
from local.openstack.api import Object
from local.openstack.configs import PASSWORD
from local.openstack.peer import Peer
from local.openstack.project import Project
from local.openstack.proxy import Fault, Proxy

_TIMEOUT = 120.0
_NO_ACTION = {"type": "HTTPNotFound", "message": "The resource could not be found.", "detail": ""}
WITHOUT_EXTENSION = Fault(404, {"NeutronError": _NO_ACTION})
"""Neutron's answer to an action of an extension that it lacks."""


class Site:
    """One project. What the test itself does bypasses the proxy."""

    def __init__(self, peer: Peer, proxy: Proxy, project: Project) -> None:
        self.peer = peer
        self.proxy = proxy
        self.project = project

    @cached_property
    def nodes(self) -> tuple[Object, list[Object]]:
        """The nodes' network and its subnets."""
        return self.project.network("nodes", "10.1.0.0/16", "fd00:1::/64")

    @cached_property
    def router(self) -> str:
        """The ID of the router of the nodes' network."""
        return self.project.router(*self.nodes[1])

    def server(self, name: str) -> str:
        """The ID of a new server on the nodes' network."""
        return self.project.server(name, self.nodes)[0]

    def config(self, **changes: Any) -> Config:
        """A cloud config of this project."""
        user = Named(name=self.project.name, domain_id="default")
        credentials = Password(user, PASSWORD, Named(id=self.project.id))
        return replace(Config("c-1", self.proxy.auth_url, credentials), **changes)

    def cloud(self, *, regional: bool = False, **changes: Any) -> OpenStack:
        """The cloud as a new process sees it. Attempts follow at once; each may take what a busy machine needs."""
        made = OpenStack(self.config(**changes), regional=regional, timeout=_TIMEOUT)
        made._client._sleep = lambda _: None
        return made

    def calls(self, work: Callable[[], object]) -> dict[str, int]:
        """The requests that this work makes, by operation."""
        self.proxy.counts.clear()
        work()
        return dict(self.proxy.counts)

    def fails(self, operation: str, fault: Fault, times: int = 1) -> None:
        """Let the next requests of this operation go wrong."""
        left = [fault] * times

        def ask(each: str) -> Fault | None:
            return left.pop() if left and each == operation else None

        self.proxy.fault = ask

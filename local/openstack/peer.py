"""A running peer: the services on a copy of the state, and the proxy that its public endpoints lead through."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.openstack import environment, state
from local.openstack.api import Api
from local.openstack.environment import Report
from local.openstack.process import Service, free_ports
from local.openstack.proxy import Proxy
from local.waiting import to_nobody

_VERSIONS = {"network": "/v2.0", "load-balancer": "/v2", "compute": "/v2.1"}


@dataclass(frozen=True, slots=True)
class Peer:
    """The services. `admin` and `urls` bypass the proxy; `proxy.url` + `/identity/v3` is Keystone for controllers."""

    admin: Api
    proxy: Proxy
    ports: dict[str, int]
    pids: dict[str, int]

    @property
    def auth_url(self) -> str:
        """Keystone, through the proxy."""
        return f"{self.proxy.url}/identity/v3"

    def api(self, user: str, project: str) -> Api:
        """The services as this user of this project sees them."""
        return Api.login(_url(self.ports["identity"]), user, project, self.admin.urls)


@contextmanager
def running(report: Report = to_nobody) -> Iterator[Peer]:
    """A fresh peer, which has ended after the block. What is not there yet is installed and made first."""
    python = environment.ensure(report)
    made = state.ensure(python, report)
    with ExitStack() as stack:
        temporary = Path(tempfile.mkdtemp(prefix="openstack-peer-"))
        stack.callback(shutil.rmtree, temporary, ignore_errors=True)
        ports = free_ports()
        proxy = stack.enter_context(Proxy(ports))
        folder = temporary / "state"
        state.copy(made, folder, ports, python.parents[1], proxy.url)
        # All start at once; each takes seconds.
        services = {service: Service(service, python, folder, port) for service, port in ports.items()}
        for each in services.values():
            stack.callback(each.end)
        for each in services.values():
            each.wait()
        urls = {service: _url(ports[service]) + version for service, version in _VERSIONS.items()}
        peers = {f"{service}-peer": f"{_url(ports[service])}/peer" for service in _VERSIONS}
        admin = Api.login(_url(ports["identity"]), urls=urls | peers)
        yield Peer(admin, proxy, ports, {service: each.pid for service, each in services.items()})


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"

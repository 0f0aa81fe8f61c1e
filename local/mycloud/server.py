"""mycloud's API server process: combines application, lifecycle and sockets."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from starlette.types import Lifespan

from local.abortable_http import AbortableProtocol
from local.addresses import API_PORT
from local.folder_guard import FolderGuard, running
from local.mycloud.api import create_app
from local.mycloud.context import Context
from local.mycloud.folder import MyCloudFolder
from local.mycloud.lifecycle import Lifecycle
from local.mycloud.machinery import LocalMachinery
from local.mycloud.models.compute import Cluster
from local.mycloud.models.networking import NetworkRecord
from local.mycloud.privileged_ports import first_bindable_port
from local.mycloud.store import Store
from local.mycloud.suspension import notice_restart

KEEP_ALIVE_SECONDS = 300
SHUTDOWN_SECONDS = 1
"""For open requests; only the data plane's wait for changes ever takes longer, and it is repeated."""


def serve(state_dir: Path) -> None:
    """Serve the site of this state folder until SIGTERM. Its `site.json` and token must exist.

    Steps of the lifecycle that are running when this returns end with the process, as after a kill.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    folder = MyCloudFolder(state_dir.absolute())
    block = folder.block()
    store = Store(folder.database)
    notice_restart(store, folder.boot_note, something_runs=lambda: bool(running(folder)))
    machinery = LocalMachinery(folder, block, os.environ)
    lifecycle = Lifecycle(store, machinery)
    context = Context(
        block,
        store,
        folder.token(),
        _Kubeconfigs(store, machinery),
        first_port=first_bindable_port(),
        is_healthy=lambda: lifecycle.is_alive,
    )
    uvicorn.run(
        create_app(context, _with(lifecycle, FolderGuard(folder))),
        host=block.api_address,
        port=API_PORT,
        http=AbortableProtocol,
        ws="none",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        log_config=None,
        # Longer than clients leave a connection unused, so that none is closed under a request.
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


@dataclass(frozen=True, slots=True)
class _Kubeconfigs:
    store: Store
    machinery: LocalMachinery

    def kubeconfig(self, cluster: Cluster, ttl: timedelta) -> str:
        with self.store.read() as session:
            network = session.get(NetworkRecord, cluster.network_id)
        return self.machinery.kubeconfig(cluster, network, ttl)


def _with(lifecycle: Lifecycle, guard: FolderGuard) -> Lifespan[FastAPI]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        lifecycle.start()
        guard.start()
        yield
        guard.stop()
        lifecycle.stop(wait=False)

    return lifespan

"""mycloud's API server process: combines application, lifecycle and sockets."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from fastapi import FastAPI
from starlette.types import Lifespan

from local.addresses import API_PORT
from local.folder_guard import FolderGuard, running
from local.http_server import config, run
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
    application = create_app(context, _with(lifecycle, FolderGuard(folder)))
    run(config(application, block.api_address, API_PORT, lifespan="on"))


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

"""The process of a site's Alibaba Cloud: the stand-in, and the keeper of its cluster."""

from __future__ import annotations

import hmac
import logging
import os
from collections.abc import Callable
from pathlib import Path

from local.addresses import API_PORT
from local.alicloud.cloud import AliCloud
from local.alicloud.cluster import CLUSTER_ID, prepare, wanted_machines
from local.alicloud.contents import contents
from local.alicloud.folder import database
from local.alicloud.machines import INSTANCE
from local.alicloud.revision import revision
from local.cluster_keeper import Keeper, Machines
from local.cluster_site import CONTENTS_PATH, HEALTH_PATH, TOKEN_HEADER
from local.folder_guard import FolderGuard
from local.http_messages import Answer, Request, json_answer
from local.http_server import Application, config, run
from local.standin.server import answering
from local.state_folder import StateFolder


def serve(site_dir: Path) -> None:
    """Serve the site of this folder until SIGTERM. Its `site.json` and token must exist.

    A step of the keeper that is running when this returns ends with the process, as after a kill.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    folder = StateFolder(site_dir.absolute())
    block = folder.block()
    cloud = AliCloud(database(folder))
    with cloud.changing() as account:
        prepare(account, block)
    # Pods here have addresses of the loopback, from which no machine can be told.
    cloud.metadata.machine = next(iter(cloud.world.store.all(INSTANCE)))["id"]

    def wanted() -> Machines:
        with cloud.changing() as account:
            return wanted_machines(account)

    keeper = Keeper(folder, block, CLUSTER_ID, wanted, os.environ)
    guard = FolderGuard(folder)
    side = side_of(cloud, folder, lambda: keeper.is_alive, lambda: keeper.is_ready)
    keeper.start()
    guard.start()
    run(config(Application(answering(cloud, side)), block.api_address, API_PORT))
    guard.stop()
    keeper.stop()


def side_of(
    cloud: AliCloud, folder: StateFolder, is_alive: Callable[[], bool], is_ready: Callable[[], bool]
) -> Callable[[Request], Answer | None]:
    """Answers what is not the cloud's API: health, contents (for the site alone), the metadata service."""
    health = {"site": folder.fingerprint(), "revision": revision()}

    def side(request: Request) -> Answer | None:
        if request.path == HEALTH_PATH:
            return json_answer(200, health) if is_alive() else json_answer(503, {})
        if request.path == CONTENTS_PATH:
            if not hmac.compare_digest(request.headers.get(TOKEN_HEADER, ""), folder.token()):
                return json_answer(403, {})
            with cloud.changing() as account:
                return json_answer(200, {"ready": is_ready(), **contents(account)})
        return cloud.metadata(request)

    return side

"""`python -m local.openstack.site_server SITE_DIR`: the OpenStack of a site, with a real control plane and machines."""

from __future__ import annotations

import argparse
import hmac
import logging
import os
import sys
from pathlib import Path
from typing import Final, NoReturn

from cloud_controller.stop_signals import stop_on_signals
from local.addresses import API_PORT
from local.cluster_keeper import Keeper, Machines
from local.cluster_site import CONTENTS_PATH, HEALTH_PATH, TOKEN_HEADER
from local.errors import SiteError
from local.folder_guard import FolderGuard
from local.http_client import HttpError
from local.http_messages import Answer, Request, json_answer
from local.openstack import peer
from local.openstack.api import ApiError
from local.openstack.cluster import CLUSTER_ID, prepared, wanted_machines
from local.openstack.contents import contents
from local.openstack.folder import cluster_file, services
from local.openstack.proxy import Proxy
from local.openstack.revision import revision
from local.state_folder import StateFolder

_TICK_SECONDS: Final = 2.0
"""Longer than elsewhere: each look is a request to nova-api, which takes a tenth of a second of a processor."""


def serve(site_dir: Path) -> None:
    """Serve the site of this folder until SIGTERM. Its `site.json` and token must exist."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    stopped = stop_on_signals()
    folder = StateFolder(site_dir.absolute())
    block = folder.block()
    with peer.shared(services(folder), keep=True) as running:
        cluster = prepared(running, block, cluster_file(folder))
        api = running.api(cluster.project, cluster.project)

        def wanted() -> Machines:
            try:
                return wanted_machines(api)
            except (ApiError, HttpError) as error:
                raise SiteError(f"the services do not tell which servers run: {error}") from error

        keeper = Keeper(folder, block, CLUSTER_ID, wanted, os.environ, tick_seconds=_TICK_SECONDS)
        guard = FolderGuard(folder)
        health = {"site": folder.fingerprint(), "revision": revision()}

        def aside(request: Request) -> Answer | None:
            if request.path == HEALTH_PATH:
                return json_answer(200, health) if keeper.is_alive else json_answer(503, {})
            if request.path != CONTENTS_PATH:
                return None
            if not hmac.compare_digest(request.headers.get(TOKEN_HEADER, ""), folder.token()):
                return json_answer(403, {})
            return json_answer(200, {"ready": keeper.is_ready, **contents(api, cluster)})

        with Proxy(running.ports, aside).serving(block.api_address, API_PORT):
            keeper.start()
            guard.start()
            stopped.wait()
            guard.stop()
            keeper.stop()


def main(argv: list[str] | None = None) -> NoReturn:
    """Serve until SIGTERM, then end the process."""
    parser = argparse.ArgumentParser(prog="python -m local.openstack.site_server", description=__doc__)
    parser.add_argument("site_dir", type=Path, help="the site's folder, with its site.json")
    serve(parser.parse_args(argv).site_dir)
    # At once: a start of the control plane may take minutes, and the next run finishes it as after any kill.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

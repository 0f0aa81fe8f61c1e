"""The process of a site's AWS: moto behind a gate, with real processes for its clusters and instances."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from cloud_controller.stop_signals import on_stop_signal
from local.addresses import API_PORT
from local.aws.folder import aws_folder, state_file, webhook_folder, write_credentials
from local.aws.gate import Gate
from local.aws.lifecycle import Lifecycle
from local.aws.machinery import Machinery
from local.aws.revision import revision
from local.aws.simulator import Simulator
from local.aws.webhook import Webhook
from local.folder_guard import FolderGuard, running
from local.state_folder import endpoint


def serve(site_dir: Path) -> None:
    """Serve the site of this folder until SIGTERM. Its `site.json` and token must exist.

    Steps of the lifecycle that are running when this returns end with the process, as after a kill.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # one line per call would flood the log
    folder = aws_folder(site_dir)
    block = folder.block()
    simulator = Simulator(state_file(folder))
    simulator.load()
    webhook = Webhook(webhook_folder(folder), block.api_address, endpoint(block), simulator.creator_of)
    machinery = Machinery(folder, block, webhook, os.environ)
    if not running(folder):
        # The machines were not stopped on request: everything ended, by `stop` or with the computer.
        machinery.forget_boots()
        with simulator.changing():
            simulator.start_crashed()
    write_credentials(folder, *simulator.credentials())
    lifecycle = Lifecycle(simulator, machinery, block)
    lifecycle.notice_ended_clusters()  # before the first request
    health = {"site": folder.fingerprint(), "revision": revision()}
    moto = DomainDispatcherApplication(create_backend_app)

    def key_of_issuer(issuer: str) -> str | None:
        issuers = {cluster.identity["oidc"]["issuer"]: cluster for cluster in simulator.clusters()}
        return machinery.token_key(issuers[issuer]) if issuer in issuers else None

    gate = Gate(moto, simulator, lambda: health if lifecycle.is_alive else None, lifecycle.ring, key_of_issuer)
    server = make_server(block.api_address, API_PORT, gate, threaded=True, request_handler=MotoRequestHandler)
    on_stop_signal(server.shutdown)
    guard = FolderGuard(folder)
    with webhook.serving():
        lifecycle.start()
        guard.start()
        server.serve_forever()
        guard.stop()
        lifecycle.stop()
    simulator.lock.acquire()  # for good: the running call has finished, and none starts

"""`python -m local.mycloud.balancer STATE_DIR`: the load balancers' data plane, until SIGTERM or its folder is gone."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
from pathlib import Path

from local.mycloud.balancer.data_plane import DataPlane
from local.mycloud.balancer.follower import Follower
from local.mycloud.folder import MyCloudFolder
from local.state_folder import endpoint

LOOK_SECONDS = 2.0
"""How often it checks that the site's folder exists: without it this process could not be found again."""

log = logging.getLogger(__name__)


def main() -> None:
    """Forward until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m local.mycloud.balancer", description=__doc__)
    parser.add_argument("state_dir", type=Path, help="the site's state folder, with its site.json")
    folder = MyCloudFolder(parser.parse_args().state_dir.absolute())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    asyncio.run(_run(folder))
    # At once: a request for changes may still wait on its thread.
    logging.shutdown()
    os._exit(0)


async def _run(folder: MyCloudFolder) -> None:
    data_plane = DataPlane()
    follower = Follower(data_plane, endpoint(folder.block()), folder.token())
    work = asyncio.create_task(follower.run())
    guard = asyncio.create_task(_end_with(folder, folder.fingerprint(), work))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        log.info("stopping")
    finally:
        guard.cancel()
        await data_plane.close()


async def _end_with(folder: MyCloudFolder, site: str, work: asyncio.Task[None]) -> None:
    while folder.still_holds(site):
        await asyncio.sleep(LOOK_SECONDS)
    log.error("%s is gone", folder.root)
    work.cancel()


if __name__ == "__main__":
    main()

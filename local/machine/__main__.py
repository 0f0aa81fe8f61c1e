"""A machine's process: `python -m local.machine DIRECTORY`. SIGTERM shuts it down."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

from cloud_controller.kube import Kube, KubeconfigError
from local.machine.config import ConfigError, MachineConfig, load_config
from local.machine.kubelet import Kubelet
from local.machine.proxier import Proxier
from local.machine.proxy_rules import Node


def main() -> None:
    """Entry point."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m local.machine DIRECTORY")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    directory = Path(sys.argv[1]).absolute()
    try:
        config = load_config(directory)
        kubelet = Kube.from_file(directory / "kubelet.kubeconfig")
        proxier = Kube.from_file(directory / "proxier.kubeconfig")
    except (ConfigError, KubeconfigError) as error:
        raise SystemExit(str(error)) from None
    asyncio.run(_run(directory, config, kubelet, proxier))
    # Hanging requests, on threads that Python would wait for, must not keep a machine from stopping.
    logging.shutdown()
    os._exit(0)


async def _run(directory: Path, config: MachineConfig, kubelet: Kube, proxier: Kube) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    parts = [
        asyncio.ensure_future(Kubelet(directory, config, kubelet).run()),
        asyncio.ensure_future(Proxier(proxier, Node(config.node_name, config.address)).run()),
    ]
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait([*parts, stopping], return_when=asyncio.FIRST_COMPLETED)
    logging.info("shutting down machine=%s", config.id)
    for part in parts:
        part.cancel()
    results = await asyncio.gather(*parts, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


if __name__ == "__main__":
    main()

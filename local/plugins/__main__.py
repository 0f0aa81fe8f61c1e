"""Serves the plugin of one package: `python -m local.plugins PACKAGE`, as Pulumi's CLI starts it by a launcher."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from local.plugins.channels import SIZES
from local.plugins.engine_log import EngineLog
from local.plugins.packages import factory_of, offline_factory_of
from local.plugins.servicer import ProviderServicer

_THREADS: Final = 256
"""More than a run has steps at once: a Cancel must not wait for one of them."""


def main() -> None:
    """Serve until the CLI ends this process, or is gone and so has closed our standard input."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=__doc__)
    parser.add_argument("package")
    parser.add_argument("--offline", metavar="PYTHON", help="record everything; PYTHON is the program's interpreter")
    # The CLI adds the engine's address, which its handshake says again, and options for its own logs.
    given, _ = parser.parse_known_args()
    factory = offline_factory_of(given.package, given.offline) if given.offline else factory_of(given.package)
    servicer = ProviderServicer(given.package, factory, EngineLog())
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=SIZES)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    try:
        while os.read(sys.stdin.fileno(), 1 << 16):
            pass
    except KeyboardInterrupt:
        pass
    servicer.close()
    sys.stdout.flush()
    os._exit(0)  # without waiting for calls that nobody will answer


if __name__ == "__main__":
    main()

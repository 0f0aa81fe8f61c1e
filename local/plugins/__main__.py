"""Serves the plugin of one package: `python -m local.plugins PACKAGE`, as Pulumi's CLI starts it by a launcher."""

from __future__ import annotations

import argparse
from typing import NoReturn

from local.plugins.channels import serve_the_cli
from local.plugins.engine_log import EngineLog
from local.plugins.packages import NOTICES, factory_of, offline_factory_of
from local.plugins.servicer import ProviderServicer, serve


def main() -> NoReturn:
    """Serve until the CLI ends this process, or is gone and so has closed our standard input."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=__doc__)
    parser.add_argument("package")
    parser.add_argument("--offline", metavar="PYTHON", help="record everything; PYTHON is the program's interpreter")
    # The CLI adds the engine's address, which its handshake says again, and options for its own logs.
    given, _ = parser.parse_known_args()
    if given.offline:
        factory = offline_factory_of(given.package, given.offline)
        servicer = ProviderServicer(given.package, factory, EngineLog(), offline=True)
    else:
        notice = NOTICES.get(given.package, "")
        servicer = ProviderServicer(given.package, factory_of(given.package), EngineLog(), notice)
    _server, port = serve(servicer)
    serve_the_cli(port, servicer.close)


if __name__ == "__main__":
    main()

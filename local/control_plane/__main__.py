"""The command line of the control plane's binaries: `python -m local.control_plane build`."""

from __future__ import annotations

import argparse
import sys

from local.control_plane.binaries import ensure
from local.errors import BuildError


def main(arguments: list[str] | None = None) -> int:
    """Build or find the binaries; if that fails, the exit code is 1 with one message on stderr."""
    parser = argparse.ArgumentParser(prog="python -m local.control_plane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build etcd and Kubernetes' components if they are missing")
    commands.add_parser("path", help="print the path of each binary; build what is missing")
    options = parser.parse_args(arguments)
    try:
        binaries = ensure(lambda line: print(f"control plane: {line}", file=sys.stderr, flush=True))
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.command == "path":
        for name, path in binaries.paths.items():
            print(f"{name}\t{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

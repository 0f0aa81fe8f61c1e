"""`python -m local.mycloud STATE_DIR`: mycloud's API server, with the lifecycle that carries out what it was asked."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from local.mycloud.server import serve


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGTERM; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m local.mycloud", description=__doc__)
    parser.add_argument("state_dir", type=Path, help="the site's state folder, with its site.json")
    serve(parser.parse_args(argv).state_dir)
    return 0


if __name__ == "__main__":
    sys.exit(main())

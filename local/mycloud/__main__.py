"""`python -m local.mycloud STATE_DIR`: mycloud's API server and the lifecycle that carries out its requests."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from local.mycloud.server import serve


def main(argv: list[str] | None = None) -> NoReturn:
    """Serve until SIGTERM, then end the process."""
    parser = argparse.ArgumentParser(prog="python -m local.mycloud", description=__doc__)
    parser.add_argument("state_dir", type=Path, help="the site's state folder, with its site.json")
    serve(parser.parse_args(argv).state_dir)
    # At once: a step of the lifecycle may take minutes, and the next start finishes it as after any kill.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

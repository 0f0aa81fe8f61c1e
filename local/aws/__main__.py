"""`python -m local.aws SITE_DIR`: the AWS of a site, moto with real control planes and machines behind it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from local.aws.server import serve
from local.aws.simulator import UnreadableStateError


def main(argv: list[str] | None = None) -> NoReturn:
    """Serve until SIGTERM, then end the process."""
    parser = argparse.ArgumentParser(prog="python -m local.aws", description=__doc__)
    parser.add_argument("site_dir", type=Path, help="the site's folder, with its site.json")
    try:
        serve(parser.parse_args(argv).site_dir)
    except UnreadableStateError as error:
        raise SystemExit(str(error)) from None
    # At once: a step of the lifecycle may take minutes, and the next start finishes it as after any kill.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

"""`python -m local.alicloud SITE_DIR`: the Alibaba Cloud of a site, with a real control plane and machines."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from local.alicloud.server import serve


def main(argv: list[str] | None = None) -> NoReturn:
    """Serve until SIGTERM, then end the process."""
    parser = argparse.ArgumentParser(prog="python -m local.alicloud", description=__doc__)
    parser.add_argument("site_dir", type=Path, help="the site's folder, with its site.json")
    serve(parser.parse_args(argv).site_dir)
    # At once: a start of the control plane may take minutes, and the next run finishes it as after any kill.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

"""Runs the services for the users of a folder: `python -m local.openstack FOLDER`; see `local.openstack.peer`."""

from __future__ import annotations

import sys
from pathlib import Path

from local.openstack.peer import serve

if __name__ == "__main__":
    serve(Path(sys.argv[1]))

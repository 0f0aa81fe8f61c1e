"""`python -m cloud_controller.cli`: the same as the command `cloud-controller`."""

from __future__ import annotations

import sys

from cloud_controller.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())

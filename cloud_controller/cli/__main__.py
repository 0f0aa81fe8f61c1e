"""Runs the command line as a module: `python -m cloud_controller.cli`."""

from __future__ import annotations

import sys

from cloud_controller.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())

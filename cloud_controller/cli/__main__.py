"""Runs the command line as a module: `python -m cloud_controller.cli`."""

from __future__ import annotations

import gc
import sys

# What is imported stays: to search it for cycles meanwhile and at the end takes a sixth of a short command.
gc.disable()
from cloud_controller.cli.commands import main  # noqa: E402

gc.freeze()
gc.enable()

if __name__ == "__main__":
    sys.exit(main())

"""Runs this project's controller with its AWS caches on a fast clock, so that their hours take minutes.

    python -m benchmarks.aws.fast_caches 60 run --cloud aws ...

A cache takes its clock as a parameter whose default is bound when its module is imported: these modules alone are
imported while `time.monotonic` is fast. Everything else, deadlines of calls included, runs on the real clock.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from unittest.mock import patch

from cloud_controller.cli.commands import main

if __name__ == "__main__":
    factor, real = float(sys.argv[1]), time.monotonic
    with patch.object(time, "monotonic", lambda: factor * real()):
        import_module("cloud_controller.clouds.aws.cloud")
    sys.exit(main(sys.argv[2:]))

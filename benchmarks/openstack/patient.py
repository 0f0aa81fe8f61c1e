"""Runs this project's controller with patience for services that answer one request at a time on a busy machine.

In OpenStack several processes serve an API. Here ten creations at once wait for each other, and those that take longer
than the controller waits for an answer (15 s) would be repeated, which says nothing about it.
"""

from __future__ import annotations

import sys
from functools import partial
from unittest.mock import patch

from cloud_controller.cli.commands import main
from cloud_controller.clouds.openstack import cloud

_TIMEOUT = 300.0

if __name__ == "__main__":
    with patch.object(cloud, "OpenStack", partial(cloud.OpenStack, timeout=_TIMEOUT)):
        sys.exit(main(sys.argv[1:]))

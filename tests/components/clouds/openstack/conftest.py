"""The real services, for what the program makes there."""

from __future__ import annotations

from tests.cloud_controller.clouds.openstack.conftest import openstack as openstack
from tests.cloud_controller.clouds.openstack.conftest import openstack_peer as openstack_peer

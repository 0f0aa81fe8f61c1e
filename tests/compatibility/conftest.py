"""The real services of OpenStack, which the tests of a run share."""

from tests.cloud_controller.clouds.openstack.conftest import openstack_peer as openstack_peer

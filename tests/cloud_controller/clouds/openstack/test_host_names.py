"""What servers' hosts may be called; test_instances.py compares it with the real Nova."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.openstack.host_names import host_names


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("K8S-Worker-1", "k8s-worker-1"),
        ("pool-v1.26.4-abc", "pool-v1-26-4-abc"),
        ("my worker_1", "my-worker-1"),
        (f"{'a' * 62}.b", "a" * 62),
        ("节点", "Server-s-1"),
    ],
)
def test_nova_makes_a_host_name_of_the_servers_name(name: str, host: str) -> None:
    assert [*host_names({"id": "s-1", "name": name})] == [name, host]


def test_the_host_name_that_nova_shows_goes_before_what_it_makes_of_a_name() -> None:
    """A server that was renamed keeps it."""
    server = {"id": "s-1", "name": "New Name", "OS-EXT-SRV-ATTR:hostname": "old-name"}

    assert [*host_names(server)] == ["New Name", "old-name"]

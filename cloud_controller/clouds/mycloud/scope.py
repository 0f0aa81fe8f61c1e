"""The cluster's network and route table on mycloud, looked up when first needed.

They cannot change while the cluster exists, so they are cached for the life of the process.
"""

from __future__ import annotations

from functools import cached_property

from cloud_controller.cloud import InvalidConfiguration, NotFound
from cloud_controller.clouds.mycloud.client import Client, Object


class Scope:
    """The cluster of all calls."""

    def __init__(self, client: Client, cluster_id: str, network_id: str | None) -> None:
        self._client = client
        self._network_id = network_id
        self.cluster_id = cluster_id

    @cached_property
    def network_id(self) -> str:
        """The network in the cloud config, otherwise the cluster's."""
        return self._network_id or str(self.cluster()["network_id"])

    @property
    def route_table_id(self) -> str:
        """The network's only route table."""
        return str(self._network["route_table_id"])

    def cluster(self) -> Object:
        """The cluster's current state. Raises InvalidConfiguration if it does not exist."""
        try:
            return self._client.get("clusters", self.cluster_id)
        except NotFound:
            raise InvalidConfiguration(
                "cloud config: [Global] cluster-id", f"cluster {self.cluster_id} does not exist"
            ) from None

    @cached_property
    def _network(self) -> Object:
        try:
            return self._client.get("networks", self.network_id)
        except NotFound:
            raise InvalidConfiguration(
                "cloud config: [Global] network-id", f"network {self.network_id} does not exist"
            ) from None

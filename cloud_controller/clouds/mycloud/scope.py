"""Where a cluster lives on mycloud: its network and route table, looked up once and when first needed.

None of them can change while the cluster exists, so they are kept as long as the process.
"""

from __future__ import annotations

from functools import cached_property

from cloud_controller.cloud import InvalidConfiguration, NotFound
from cloud_controller.clouds.mycloud.client import Client, Object


class Scope:
    """The cluster that every call is about."""

    def __init__(self, client: Client, cluster_id: str, network_id: str | None) -> None:
        self._client = client
        self._network_id = network_id
        self.cluster_id = cluster_id

    @cached_property
    def network_id(self) -> str:
        """The network that the cloud config names, else that of the cluster."""
        return self._network_id or str(self.cluster()["network_id"])

    @property
    def route_table_id(self) -> str:
        """The one route table of the network."""
        return str(self._network["route_table_id"])

    def cluster(self) -> Object:
        """The cluster as it is now. Raises InvalidConfiguration if there is none of this id."""
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

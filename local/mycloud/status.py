"""Reads a site's database without the API: for `status`, which must work when the API is down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.mycloud.balancing import public
from local.mycloud.models.balancing import LoadBalancerRecord
from local.mycloud.models.compute import Cluster, MachineRecord
from local.mycloud.models.networking import NetworkRecord
from local.mycloud.models.volumes import Volume
from local.mycloud.store import Store


def site_objects(database: Path) -> dict[str, list[dict[str, Any]]]:
    """Clusters, machines, load balancers and volumes in the form of the API, shortened to what people need."""
    store = Store(database)
    try:
        with store.read() as session:
            networks = session.query(NetworkRecord)
            clusters = session.query(Cluster)
            machines = session.query(MachineRecord)
            balancers = [*session.query(LoadBalancerRecord)]
            volumes = session.query(Volume)
    finally:
        store.close()
    common = {"id", "name", "state", "state_reason"}
    return {
        "networks": [each.model_dump(mode="json", include=common | {"cidr", "pod_cidr"}) for each in networks],
        "clusters": [each.model_dump(mode="json", include=common | {"version", "endpoint"}) for each in clusters],
        "machines": [
            each.model_dump(
                mode="json", include=common | {"zone", "role", "type", "private_ips", "cluster_id", "simulated"}
            )
            for each in machines
        ],
        "load_balancers": [
            {
                **public(each).model_dump(mode="json", include=common | {"address", "listeners"}),
                # A shared one has listeners of several.
                "clusters": sorted(v for k, v in {*each.tags.items(), *each.part_tags()} if k == CLUSTER_TAG),
            }
            for each in balancers
        ],
        "volumes": [
            each.model_dump(mode="json", include=common | {"zone", "size_gib", "attachment"}) for each in volumes
        ],
    }

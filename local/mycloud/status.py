"""What a site's database says, read without the API: for `status`, and when the API is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from local.mycloud.balancing import public
from local.mycloud.models import Cluster, LoadBalancerRecord, MachineRecord, NetworkRecord, State
from local.mycloud.store import Filter, Store


def site_objects(database: Path) -> dict[str, list[dict[str, Any]]]:
    """Clusters, machines and load balancers in the form of the API, shortened to what a person looks for."""
    store = Store(database)
    try:
        with store.read() as session:
            networks = session.query(NetworkRecord)
            clusters = session.query(Cluster)
            machines = session.query(MachineRecord)
            balancers = [public(each) for each in session.query(LoadBalancerRecord)]
    finally:
        store.close()
    common = {"id", "name", "state", "state_reason"}
    return {
        "networks": [each.model_dump(include=common | {"cidr", "pod_cidr"}) for each in networks],
        "clusters": [each.model_dump(include=common | {"version", "endpoint"}) for each in clusters],
        "machines": [
            each.model_dump(include=common | {"zone", "role", "type", "private_ips", "cluster_id"}) for each in machines
        ],
        "load_balancers": [each.model_dump(include=common | {"address", "listeners"}) for each in balancers],
    }


def suspend(database: Path) -> None:
    """Note for all that runs that it shall start again with the site, instead of being found dead."""
    store = Store(database)
    try:
        with store.write() as session:
            for cluster in session.query(Cluster, Filter(states=[State.AVAILABLE.value])):
                cluster.state, cluster.state_reason = State.UPDATING, "the site was stopped"
                session.save(cluster)
            for machine in session.query(MachineRecord, Filter(states=[State.RUNNING.value])):
                machine.state, machine.state_reason = State.CREATING, "the site was stopped"
                session.save(machine)
    finally:
        store.close()

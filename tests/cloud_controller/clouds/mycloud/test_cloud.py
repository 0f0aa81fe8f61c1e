"""mycloud's machines, routes and access as the controllers see them, on the real API."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from cloud_controller.cloud import (
    AccessDenied,
    InstanceRef,
    InstanceState,
    InvalidConfiguration,
    NodeAddress,
    Quota,
    Route,
)
from cloud_controller.clouds.mycloud.annotations import INGRESS_NODE
from cloud_controller.clouds.mycloud.cloud import MyCloud
from cloud_controller.clouds.mycloud.config import Config
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.controllers.route import observe_table
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.mycloud.models.common import State
from local.mycloud.models.compute import Cluster

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

# --------------------------------------------------------------------------------------------------------- instances


def test_a_machine_is_found_by_provider_id_and_by_name(site: MyCloudSite) -> None:
    machine = site.machine("worker-0", tags={CLUSTER_TAG: site.cluster["id"], INGRESS_NODE: "true"})
    by_id, by_name = InstanceRef("any-name", provider_id(machine)), InstanceRef("worker-0")

    found = site.cloud.instances.describe([by_id, by_name])

    instance = found[by_id]
    assert instance is not None and instance == found[by_name]
    assert instance.provider_id == f"mycloud://local/zone-b/{machine['id']}"
    assert (instance.type, instance.zone, instance.region) == ("m1.small", "zone-b", "local")
    assert instance.addresses == (
        NodeAddress("InternalIP", machine["private_ips"][0]),
        NodeAddress("InternalIP", machine["ipv6_addresses"][0]),
        NodeAddress("Hostname", "worker-0"),
    )
    assert instance.additional_annotations == {INGRESS_NODE: "true"}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.CREATING, InstanceState.PENDING),
        (State.RUNNING, InstanceState.RUNNING),
        (State.STOPPING, InstanceState.STOPPED),
        (State.STOPPED, InstanceState.STOPPED),
        (State.FAILED, InstanceState.STOPPED),
        (State.TERMINATED, None),
    ],
)
def test_states(site: MyCloudSite, state: State, expected: InstanceState | None) -> None:
    ref = InstanceRef("n", provider_id(site.machine("worker-0", state=state)))

    instance = site.cloud.instances.describe([ref])[ref]

    assert (instance and instance.state) == expected


def test_a_name_that_was_used_before_means_the_machine_that_lives(site: MyCloudSite) -> None:
    site.machine("worker-0", state=State.TERMINATED)
    living = site.machine("worker-0")

    instance = site.cloud.instances.describe([InstanceRef("worker-0")])[InstanceRef("worker-0")]

    assert instance is not None and instance.id == living["id"]


# ------------------------------------------------------------------------------------------------------------ routes


def pod_range(site: MyCloudSite, number: int) -> str:
    return f"{site.network['pod_cidr'].rsplit('.', 2)[0]}.{number}.0/24"


def owned(site: MyCloudSite) -> list[bool]:
    """Whose the routes of the table are, as the route controller judges."""
    observation = observe_table(site.cloud)
    return [observation.owns(route, (site.network["pod_cidr"],)) for route in observation.routes]


def test_a_route_stays_ours_when_its_machine_is_terminated_and_becomes_foreign_when_nobody_knows_it(
    site: MyCloudSite,
) -> None:
    machine = site.machine("worker-0")
    routes = site.cloud.routes
    routes.create([Route(pod_range(site, 1), machine["id"])])
    assert owned(site) == [True]

    site.set_machine_state(machine["id"], State.TERMINATED)
    assert [route.blackhole for route in routes.list()] == [True]
    assert owned(site) == [True]
    site.forget_machine(machine["id"])
    assert [route.blackhole for route in routes.list()] == [True]
    assert owned(site) == [False]


def test_routes_of_both_families_are_written_and_ours(site: MyCloudSite) -> None:
    machine = site.machine("worker-0")["id"]
    v6 = f"{site.network['pod_cidr_ipv6'].split('/')[0]}/80"
    routes = site.cloud.routes

    assert routes.create([Route(pod_range(site, 1), machine), Route(v6, machine)]) == []

    observation = observe_table(site.cloud)
    ranges = (site.network["pod_cidr"], site.network["pod_cidr_ipv6"])
    assert {route.destination_cidr for route in observation.routes} == {pod_range(site, 1), v6}
    assert all(observation.owns(route, ranges) for route in observation.routes)
    assert routes.delete(observation.routes) == []


def test_many_routes_go_in_batches_of_fifty(site: MyCloudSite) -> None:
    site.client.put("admin/quotas", {"routes_per_table": 200})
    machine = site.machine("worker-0")["id"]
    wanted = [Route(pod_range(site, number), machine) for number in range(120)]
    routes = site.cloud.routes

    assert routes.create(wanted) == []

    assert len(routes.list()) == 120
    assert site.calls("POST /v1/route_tables/{id}/routes:batch_create") == 3


def test_a_machine_says_when_it_was_created(site: MyCloudSite) -> None:
    made = site.machine("worker-0")

    (machine,) = site.cloud.instances.list()
    assert machine.created_at == datetime.fromisoformat(made["created_at"])


# ------------------------------------------------------------------------------------------------------------ quotas


def test_quotas_count_what_the_controllers_create_in_the_whole_account(site: MyCloudSite) -> None:
    site.client.create("load_balancers", {"name": "somebody's", "network_id": site.network["id"]})
    site.set_quotas(load_balancers=5)
    cloud = site.cloud

    (read,) = cloud.quotas(["service", "volume"])
    assert read() == [Quota("load balancers", 1, 5), Quota("volumes", 0, 200)]
    assert cloud.quotas(["node", "route"]) == []


# ------------------------------------------------------------------------------------------------------------ access


def test_access_is_checked_by_token_and_cluster(site: MyCloudSite) -> None:
    site.cloud.check_access(["node"])
    with pytest.raises(AccessDenied, match="token"):
        MyCloud(Config(site.endpoint, "wrong", site.cluster["id"])).check_access(["node"])
    with pytest.raises(InvalidConfiguration, match="cluster c-000000000000 does not exist"):
        MyCloud(Config(site.endpoint, site.token, "c-000000000000")).check_access(["node"])


def test_cluster_access_is_a_short_lived_kubeconfig(site: MyCloudSite) -> None:
    with site.context.store.write() as session:
        cluster = session.get(Cluster, site.cluster["id"])
        cluster.state = State.AVAILABLE
        session.save(cluster)

    people = MyCloud(Config(site.endpoint, site.token, site.cluster["id"]))

    assert people.cluster_access() == f"kubeconfig of {site.cluster['id']} for 3600 s"

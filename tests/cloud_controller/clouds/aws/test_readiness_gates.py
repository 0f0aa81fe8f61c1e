"""What readiness gates wait for behind the load balancers of AWS: targets of either type, and classic ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cloud_controller.controllers.service.facts import facts_for
from cloud_controller.controllers.service.gate_plan import Verdict, judged, registration, view_of, with_waiting
from cloud_controller.controllers.service.rules import Rules, backends_of
from cloud_controller.kube import Object
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.services import classic, named, nlb
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, endpoint, endpoint_slice, port


def waiting_pod(node: str, address: str) -> Object:
    return {
        "metadata": {"namespace": "default", "name": "web-0", "uid": "uid-pod"},
        "spec": {"nodeName": node},
        "status": {"podIPs": [{"ip": address}]},
    }


def with_a_waiting_pod(cluster: Cluster, node: str, address: str) -> None:
    """The Service's slice has one pod, which is ready but for its gate."""
    found = endpoint(address, node)
    found["conditions"]["ready"] = False
    found["targetRef"]["uid"] = "uid-pod"
    cluster.put_slice(endpoint_slice(found))


def verdict(running: Running, cluster: Cluster, pod: Object) -> Verdict:
    """The verdict about the pod, by the cloud as it is now."""
    load_balancers = running.cloud.load_balancers
    service = cluster.service()
    rules = Rules(running.cloud.cluster_id, running.cloud.load_balancer_classes)
    slices = with_waiting([*cluster.objects["endpointslices"].values()], {"uid-pod"})
    backends = backends_of(cluster.objects["nodes"].values(), load_balancers.builder, rules)
    backends = replace(backends, slices=slices)
    facts = facts_for([service], {WEB: slices}, load_balancers, rules)
    view = view_of(service, running.observed(), backends, load_balancers.builder, facts, rules)
    found = registration(pod, view)
    if isinstance(found, Verdict):
        return found
    health = {each.load_balancer: load_balancers.health(each.load_balancer) for each in found}
    return judged(found, health, 0.0, "web")


def settled(account: AwsAccount, cluster: Cluster) -> Running:
    """A controller for which the waiting pod counts as ready."""
    running = Running(account, cluster)
    for each in with_waiting([*cluster.objects["endpointslices"].values()], {"uid-pod"}):
        running.take_slice(each)
    return running.settle()


def test_a_pod_target_waits_until_it_is_healthy(account: AwsAccount, cluster: Cluster) -> None:
    cluster.put(nlb(named(nlb_target_type="ip"), port(80)))
    node = next(iter(cluster.objects["nodes"]))
    address = _another(cluster, node)
    with_a_waiting_pod(cluster, node, address)
    running = settled(account, cluster)

    assert verdict(running, cluster, waiting_pod(node, address))[:2] == (True, "Healthy")
    load_balancers = running.cloud.load_balancers
    unfit = dict.fromkeys(load_balancers.health(running.observed()[0].id), False)
    load_balancers.health = lambda _: unfit
    assert verdict(running, cluster, waiting_pod(node, address))[:2] == (False, "Unhealthy")
    load_balancers.health = lambda _: {}
    assert verdict(running, cluster, waiting_pod(node, address))[:2] == (False, "HealthUnknown")


def test_a_pod_that_is_no_target_yet_waits(account: AwsAccount, cluster: Cluster) -> None:
    cluster.put(nlb(named(nlb_target_type="ip"), port(80)))
    node = next(iter(cluster.objects["nodes"]))
    running = Running(account, cluster).settle()
    with_a_waiting_pod(cluster, node, _another(cluster, node))

    assert verdict(running, cluster, waiting_pod(node, _another(cluster, node)))[:2] == (False, "NotRegistered")


@pytest.mark.parametrize("make", [classic, nlb])
def test_behind_instances_the_node_is_enough(account: AwsAccount, cluster: Cluster, make: Any) -> None:
    cluster.put(make({}, port(80)))
    node = next(iter(cluster.objects["nodes"]))
    with_a_waiting_pod(cluster, node, "10.244.0.5")
    running = settled(account, cluster)

    assert verdict(running, cluster, waiting_pod(node, "10.244.0.5"))[:2] == (True, "Registered")


def _another(cluster: Cluster, node: str) -> str:
    """An address beside the node's."""
    first, _, last = cluster.address(node).rpartition(".")
    return f"{first}.{(int(last) + 100) % 250}"

"""Whether a cloud config and a Kubernetes cluster belong together is judged by what the cloud has of the cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloud_controller.binding import NOTHING, Binding, Evidence, judge, of_load_balancers
from cloud_controller.cloud_errors import ForeignCluster
from cloud_controller.load_balancers.model import (
    CLUSTER_UID_TAG,
    Built,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
    Reuse,
)
from cloud_controller.load_balancers.sharing import LEFT_TAG

HERE = Binding("uid-here")
WEB = Owner("c-1", "uid-web", "default", "web")


def observed(tags: dict[str, str], id: str = "lb-1") -> ObservedLoadBalancer:
    return ObservedLoadBalancer(id, LoadBalancerState.READY, LoadBalancerModel("web", tags=tags))


def test_a_cluster_without_cloud_resources_starts() -> None:
    judge([Evidence("load balancers"), Evidence("routes")], HERE, "c-1")


def test_resources_of_another_api_server_prevent_the_start_and_the_error_does_not_give_away_its_uid() -> None:
    evidence = Evidence("load balancers", found=2, alive=1, foreign={"uid-there": ["lb-7"]})

    with pytest.raises(ForeignCluster, match=r"lb-7 serve another API server .*uid-here.*kubectl get namespace") as why:
        judge([evidence], HERE, "c-1")
    assert "uid-there" not in str(why.value)


def test_resources_without_any_live_owner_prevent_the_start() -> None:
    evidence = [Evidence("load balancers", found=9), Evidence("routes", found=7)]

    with pytest.raises(ForeignCluster, match=r"9 load balancers, 7 routes.*uid-here.*--moved-from-cluster=none"):
        judge(evidence, HERE, "c-1")


def test_one_resource_with_a_live_owner_proves_the_binding_for_all_kinds() -> None:
    judge([Evidence("load balancers", found=9), Evidence("routes", found=7, alive=1)], HERE, "c-1")


def test_moved_from_cluster_none_starts_a_cluster_without_its_former_resources() -> None:
    judge([Evidence("load balancers", found=9)], Binding("uid-here", NOTHING), "c-1")


def test_resources_of_the_moved_from_cluster_are_not_foreign() -> None:
    moved = Binding("uid-here", "uid-there")

    assert moved.foreign_uid({CLUSTER_UID_TAG: "uid-there"}) is None
    assert moved.foreign_uid({CLUSTER_UID_TAG: "uid-elsewhere"}) == "uid-elsewhere"


def test_resources_without_a_cluster_uid_tag_are_not_foreign() -> None:
    assert HERE.foreign_uid({}) is None


def test_a_load_balancer_is_alive_while_a_service_of_its_uid_exists() -> None:
    lbs = [observed(WEB.tags), observed(Owner("c-1", "uid-gone", "default", "gone").tags, "lb-2")]

    assert of_load_balancers(lbs, {"uid-web"}, "c-1", HERE) == Evidence("load balancers", found=2, alive=1)


def test_a_load_balancer_left_to_other_services_is_evidence_only_for_those() -> None:
    user = Listener("TCP", 80, "pool", tags=Owner("c-1", "uid-user", "default", "user").tags)
    left = observed({**WEB.tags, LEFT_TAG: "true"})
    used = replace(left, model=replace(left.model, listeners=(user,)))

    assert of_load_balancers([left], (), "c-1", HERE) == Evidence("load balancers")
    assert of_load_balancers([used], {"uid-user"}, "c-1", HERE) == Evidence("load balancers", found=1, alive=1)


def test_a_load_balancer_of_another_cluster_id_proves_nothing() -> None:
    theirs = observed({**Owner("c-2", "uid-web", "default", "web").tags, CLUSTER_UID_TAG: "uid-there"})

    assert of_load_balancers([theirs], {"uid-web"}, "c-1", HERE) == Evidence("load balancers")


def test_a_foreign_uid_is_found_on_a_part_of_a_shared_load_balancer() -> None:
    part = Listener("TCP", 80, "pool", tags={**WEB.tags, CLUSTER_UID_TAG: "uid-there"})
    shared = ObservedLoadBalancer("lb-1", LoadBalancerState.READY, LoadBalancerModel("shared", listeners=(part,)))

    assert of_load_balancers([shared], (), "c-1", HERE).foreign == {"uid-there": ["lb-1"]}


def test_a_services_load_balancer_is_tagged_with_the_cluster_uid() -> None:
    built = HERE.tagged(Built(LoadBalancerModel("web", tags=WEB.tags)))

    assert built.model.tags == {**WEB.tags, CLUSTER_UID_TAG: "uid-here"}


def test_on_a_shared_load_balancer_only_the_services_parts_get_the_cluster_uid() -> None:
    mine, plain = Listener("TCP", 80, "pool", tags=WEB.tags), Listener("TCP", 81, "pool")

    built = HERE.tagged(Built(LoadBalancerModel("", listeners=(mine, plain)), reuse=Reuse("lb-1")))

    assert [CLUSTER_UID_TAG in each.tags for each in built.model.listeners] == [True, False]


def test_preserved_resources_lose_the_cluster_uid_tag() -> None:
    assert CLUSTER_UID_TAG not in WEB.released({**WEB.tags, CLUSTER_UID_TAG: "uid-here"})

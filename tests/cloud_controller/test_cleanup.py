"""What shows `cleanup` that a cluster is gone, and what is at stake."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cloud_controller.cleanup import Stake, at_stake, evidence
from cloud_controller.converge import Refused
from cloud_controller.kube import NAMESPACES, ApiError, ForbiddenError, UnauthorizedError, UnreachableError
from cloud_controller.kube_errors import TlsError
from cloud_controller.load_balancers.model import (
    CLUSTER_UID_TAG,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.volumes import ClaimOwner, Volume, VolumeState
from tests.fake_kubernetes import FakeKubernetes

CLOUD: Any = SimpleNamespace(cluster_id="c-1", provider_name="somecloud")
OURS = Stake(2, 1, 1, 4, frozenset({"uid-1"}))


def api_server(uid: str = "uid-2", error: Exception | None = None) -> FakeKubernetes:
    api = FakeKubernetes()
    api.put(NAMESPACES, {"metadata": {"name": "kube-system", "uid": uid}})
    if error:
        api.fail(error)
    return api


def test_without_any_evidence_the_refusal_counts_what_is_at_stake_and_names_both_options() -> None:
    with pytest.raises(Refused) as refused:
        evidence(CLOUD, OURS, None, answered=False, said=False)

    message = str(refused.value)
    assert "somecloud cannot tell. At stake: 2 load balancers, the cluster's parts of 1 shared load balancer" in message
    assert "1 volume with its data, 4 pod routes" in message
    assert "--kubeconfig" in message and "--cluster-is-gone" in message


def test_the_clouds_answer_and_the_users_word_are_evidence() -> None:
    assert "no such cluster" in evidence(CLOUD, OURS, None, answered=True, said=False)
    assert evidence(CLOUD, OURS, None, answered=False, said=True) == "--cluster-is-gone says so"


def test_another_cluster_that_answers_in_its_place_is_evidence() -> None:
    shown = evidence(CLOUD, OURS, api_server(), answered=False, said=False)

    assert shown == "another cluster answers in its place: UID uid-2 instead of uid-1"


def test_a_neighbour_that_answers_is_no_evidence() -> None:
    stake = Stake(1, uids=frozenset({"uid-1"}), neighbours=frozenset({"uid-2"}))

    with pytest.raises(Refused, match=r"another cluster of this account \(UID uid-2\).*--cluster-is-gone"):
        evidence(CLOUD, stake, api_server("uid-2"), answered=False, said=False)


def test_a_cluster_that_answers_lives_whatever_else_is_said() -> None:
    for uids in ({"uid-1"}, {"uid-1", "uid-2", ""}):
        stake = Stake(1, uids=frozenset(uids))
        with pytest.raises(Refused, match=r"c-1 still exists: its API server answers \(UID uid-1"):
            evidence(CLOUD, stake, api_server("uid-1"), answered=True, said=True)


@pytest.mark.parametrize(
    "error",
    [
        UnreachableError("connection refused"),
        TlsError("unknown authority"),
        UnauthorizedError(401, "Unauthorized", "no such token"),
        ForbiddenError(403, "Forbidden", "no"),
        ApiError(503, "Unavailable", "etcd"),
        KeyError("metadata"),
    ],
)
def test_an_api_server_that_does_not_tell_who_it_is_is_no_evidence(error: Exception) -> None:
    with pytest.raises(Refused, match=r"does not tell which cluster it is .*--cluster-is-gone"):
        evidence(CLOUD, OURS, api_server(error=error), answered=False, said=False)

    assert evidence(CLOUD, OURS, api_server(error=error), answered=False, said=True)


@pytest.mark.parametrize("uids", [set(), {""}, {"uid-1", ""}])
def test_another_cluster_that_answers_is_no_evidence_where_not_all_is_tagged(uids: set[str]) -> None:
    with pytest.raises(Refused, match="not all that is at stake is tagged with a UID"):
        evidence(CLOUD, Stake(1, routes=2, uids=frozenset(uids)), api_server(), answered=False, said=False)


def load_balancer(name: str, *owners: Owner | None, uid: str = "uid-1") -> ObservedLoadBalancer:
    """Owned by the first, with listeners of the others."""
    first, *others = ({**owner.tags, CLUSTER_UID_TAG: uid} if owner else {} for owner in owners)
    listeners = tuple(Listener("TCP", port, "pool", {}, tags) for port, tags in enumerate(others, 80))
    model = LoadBalancerModel(name, tags=first, listeners=listeners)
    return ObservedLoadBalancer(name, LoadBalancerState.READY, model)


def test_what_is_at_stake_is_counted_without_what_is_of_others() -> None:
    ours, theirs = Owner("c-1", "uid-web", "default", "web"), Owner("c-2", "uid-web", "default", "web")
    balancers = [
        load_balancer("lb-ours", ours),
        load_balancer("lb-shared", None, ours, uid=""),
        load_balancer("lb-with-others", ours, theirs),
        load_balancer("lb-theirs", theirs, uid="uid-2"),
    ]
    tags = {of: ClaimOwner(of, "uid-data", "default", "data").tags for of in ("c-1", "c-2")}
    volumes = [Volume(of, of, "zone", "region", 1, VolumeState.AVAILABLE, tags=each) for of, each in tags.items()]
    of = SimpleNamespace(read=lambda: balancers), SimpleNamespace(list=lambda: volumes)
    cloud: Any = SimpleNamespace(cluster_id="c-1", load_balancers=of[0], volumes=of[1], routes=None)

    assert at_stake(cloud, None) == Stake(
        1, 2, 1, 0, frozenset({"uid-1", ""}), neighbours=frozenset({"uid-1", "uid-2"})
    )
    cloud.load_balancers.read = cloud.volumes.list = list
    assert not at_stake(cloud, None)

"""Names that AWS takes, the same again for the same thing, and never the same for two."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cloud_controller.clouds.aws.names import PREFIX, load_balancer_name, shared_group_name, target_group_name
from cloud_controller.load_balancers.model import LoadBalancerModel, Owner

WEB = Owner("prod-1", "uid-1", "default", "web")
TAKEN_BY_AWS = re.compile(r"(?!.*--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?")
cluster_ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True)
dns_labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


def model(owner: Owner = WEB, kind: str = "network") -> LoadBalancerModel:
    return LoadBalancerModel(owner.load_balancer_name, attributes={"type": kind}, tags=owner.tags)


@given(dns_labels, dns_labels, cluster_ids)
def test_aws_takes_every_name(namespace: str, name: str, cluster_id: str) -> None:
    owner = Owner("prod-1", "uid-1", namespace, name)
    for found in (
        load_balancer_name(model(owner), owner.client_token),
        target_group_name("k8s-default-web-0123456789", "tcp-80", owner),
        shared_group_name(cluster_id),
    ):
        assert TAKEN_BY_AWS.fullmatch(found), found
        assert found.startswith(PREFIX)


def test_a_name_says_whose_it_is_and_is_the_same_again() -> None:
    found = load_balancer_name(model(), "token")

    assert found.startswith("k8s-default-web-")
    assert found == load_balancer_name(model(), "token")


def test_no_name_is_one_of_the_aws_load_balancer_controllers() -> None:
    cluster_id = "hanhorang"
    its_own = f"k8s-traffic-{cluster_id}-{hashlib.sha256(cluster_id.encode()).hexdigest()[:10]}"

    assert shared_group_name(cluster_id) != its_own
    assert its_own.rpartition("-")[2] not in shared_group_name(cluster_id)


def test_another_token_kind_or_cluster_is_another_name() -> None:
    of_another = replace(WEB, cluster_id="prod-2")
    found = [
        load_balancer_name(model(), WEB.client_token),
        load_balancer_name(model(), f"{WEB.client_token}-after-x"),
        load_balancer_name(model(kind="classic"), WEB.client_token),
        load_balancer_name(model(of_another), of_another.client_token),
        target_group_name("a", "tcp-80", WEB),
        target_group_name("a", "tcp-443", WEB),
        target_group_name("b", "tcp-80", WEB),
    ]
    assert len({*found}) == len(found)

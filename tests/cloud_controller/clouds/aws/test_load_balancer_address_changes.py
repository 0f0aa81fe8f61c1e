"""Changes of an address that wait for an acknowledgement, on AWS, also when the controller dies meanwhile."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from cloud_controller.controllers.service.address_changes import ANNOTATION, CONDITION, AddressChanges
from cloud_controller.controllers.service.controller import NODES_CHANGED, ServiceOptions
from cloud_controller.kube import Object
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import STEP, DeletionProtection, Died, Faults
from tests.cloud_controller.clouds.aws.in_the_account import (
    classic_load_balancers,
    listeners,
    load_balancers,
    subnets_of,
    target_groups,
    targets,
    with_ipv6,
)
from tests.cloud_controller.clouds.aws.services import TYPE, classic, named, nlb
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, changed, port, served

ACKNOWLEDGE = ServiceOptions(address_changes=AddressChanges.ACKNOWLEDGE)


def held(running: Running) -> str:
    """The digest of the only held change."""
    (action,) = running.plan(address_changes=AddressChanges.ACKNOWLEDGE).held
    return action.held or ""


def conditions(cluster: Cluster) -> list[str]:
    return [each["type"] for each in cluster.service()["status"].get("conditions") or []]


def test_the_scheme_waits_and_with_it_the_subnets_that_come_with_it(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(80)), options=ACKNOWLEDGE)
    (old,) = load_balancers(account)

    more = named(internal=True, subnets=account.private_subnets, healthcheck_interval=10)
    changed(cluster, more, ports=[port(80), port(443)])
    running.settle()

    (lb,) = load_balancers(account)
    assert (lb["LoadBalancerArn"], lb["Scheme"]) == (old["LoadBalancerArn"], "internet-facing")
    assert subnets_of(account) == {*account.public_subnets}
    assert {*listeners(account, lb)} == {80, 443}
    assert {group["HealthCheckIntervalSeconds"] for group in target_groups(account)} == {10}
    assert cluster.ingress == [{"hostname": old["DNSName"]}]

    changed(cluster, {ANNOTATION: held(running)})
    running.settle(rounds=6)

    (new,) = load_balancers(account)
    assert new["Scheme"] == "internal" and subnets_of(account) == {*account.private_subnets}
    assert cluster.ingress == [{"hostname": new["DNSName"]}]
    assert conditions(cluster) == []


@pytest.mark.parametrize("to", [named(internal=True), {TYPE: "classic"}], ids=["scheme", "kind"])
def test_an_acknowledged_change_takes_the_deletion_protection_off_the_old_load_balancer(
    account: AwsAccount, cluster: Cluster, to: dict[str, str]
) -> None:
    protected = named(attributes=("deletion_protection.enabled=true",))
    running = served(account, cluster, nlb(protected), options=ACKNOWLEDGE, wrap=DeletionProtection(account))
    (old,) = load_balancers(account)

    changed(cluster, to)
    running.settle()
    assert [each["LoadBalancerArn"] for each in load_balancers(account)] == [old["LoadBalancerArn"]]

    changed(cluster, {ANNOTATION: held(running)})
    running.settle(rounds=6)

    assert old["LoadBalancerArn"] not in {each["LoadBalancerArn"] for each in load_balancers(account)}
    assert cluster.ingress not in ([], [{"hostname": old["DNSName"]}])


@pytest.mark.parametrize("service", [nlb(), classic()], ids=["network", "classic"])
def test_a_service_stays_on_its_kind_of_load_balancer_and_its_nodes_follow(
    account: AwsAccount, cluster: Cluster, service: Object
) -> None:
    running = served(account, cluster, service, options=ACKNOWLEDGE)
    before = cluster.ingress
    to = "classic" if service["metadata"]["annotations"].get(TYPE) == "nlb" else "nlb"

    changed(cluster, {TYPE: to}, ports=[port(80), port(443)])
    gone = next(iter(cluster.objects["nodes"]))
    del cluster.objects["nodes"][gone]
    running.handle(NODES_CHANGED)
    running.settle()

    assert cluster.ingress == before
    if to == "nlb":
        (lb,) = classic_load_balancers(account)
        assert not load_balancers(account)
        assert gone not in {each["InstanceId"] for each in lb["Instances"]}
        assert {each["Listener"]["LoadBalancerPort"] for each in lb["ListenerDescriptions"]} == {80, 443}
    else:
        (network,) = load_balancers(account)
        assert not classic_load_balancers(account)
        assert {*listeners(account, network)} == {80, 443}
        assert all(gone not in {target for target, _ in targets(account, group)} for group in target_groups(account))


def test_a_zone_is_not_left_without_an_acknowledgement_but_entered(account: AwsAccount, cluster: Cluster) -> None:
    first, second, *_ = account.public_subnets
    running = served(account, cluster, nlb(named(subnets=(first,))), options=ACKNOWLEDGE)

    changed(cluster, named(subnets=(first, second)))
    running.settle()
    assert subnets_of(account) == {first, second}, "a further address takes none away"
    changed(cluster, named(subnets=(second,)))
    running.settle()
    assert subnets_of(account) == {first, second}
    assert conditions(cluster) == [CONDITION]
    changed(cluster, {ANNOTATION: held(running)})
    running.settle()

    assert subnets_of(account) == {second}
    assert conditions(cluster) == []


def test_ipv6_addresses_come_unasked_and_do_not_go_without_an_acknowledgement(
    account: AwsAccount, cluster: Cluster
) -> None:
    with_ipv6(account, *account.public_subnets)
    running = served(account, cluster, nlb(ports=[port(53, protocol="UDP")]), options=ACKNOWLEDGE)

    changed(cluster, named(ip_address_type="dualstack", enable_prefix_for_ipv6_source_nat="on"))
    running.settle()
    (lb,) = load_balancers(account)
    assert lb["IpAddressType"] == "dualstack"
    changed(cluster, named(ip_address_type="ipv4", enable_prefix_for_ipv6_source_nat="on"))
    running.settle()
    (lb,) = load_balancers(account)
    assert lb["IpAddressType"] == "dualstack"
    assert conditions(cluster) == [CONDITION]
    changed(cluster, {ANNOTATION: held(running)})
    running.settle()

    (lb,) = load_balancers(account)
    assert lb["IpAddressType"] == "ipv4"
    assert conditions(cluster) == []


def test_a_controller_that_dies_anywhere_neither_moves_an_address_unasked_nor_forgets_a_change(
    account: AwsAccount, cluster: Cluster
) -> None:
    fewest = 4
    for calls in itertools.count(1 if STEP == 1 else 3, STEP):
        name = f"web-{calls}"
        key, before = f"default/{name}", len(load_balancers(account))
        cluster.put(nlb({}, port(80), name=name))
        running = Running(account, cluster, options=ACKNOWLEDGE).settle(rounds=6)
        old = address(cluster, key)
        change(cluster, key, named(internal=True))
        died = dies(account, cluster, calls)
        assert address(cluster, key) == old, "nobody has acknowledged it"

        running = Running(account, cluster, options=ACKNOWLEDGE).settle(rounds=6)
        change(cluster, key, {ANNOTATION: held(running)})
        died = dies(account, cluster, calls) or died
        Running(account, cluster, options=ACKNOWLEDGE).settle(rounds=6)

        assert address(cluster, key) != old
        assert len(load_balancers(account)) == before + 1
        assert cluster.service(key)["status"].get("conditions") == []
        if not died:
            assert calls > fewest, "there was nothing to die of"
            return


def address(cluster: Cluster, key: str) -> Any:
    return cluster.service(key)["status"]["loadBalancer"]["ingress"]


def change(cluster: Cluster, key: str, annotations: dict[str, str]) -> None:
    changed(cluster, annotations, key)


def dies(account: AwsAccount, cluster: Cluster, calls: int) -> bool:
    """Whether a controller that dies after so many changing calls gets that far."""
    running = Running(account, cluster, wrap=Faults(calls, dies=True), options=ACKNOWLEDGE)
    try:
        running.settle(rounds=6)
    except Died:
        return True
    return False

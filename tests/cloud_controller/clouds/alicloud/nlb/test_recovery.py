"""What the cloud does behind a process's back: objects vanish, jobs fail, addresses move, rules are edited."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import Unavailable
from cloud_controller.load_balancers.operations import RemoveMembers
from local.alicloud import machines
from local.alicloud.clb_certificates import add_certificate
from local.alicloud.nlb_jobs import GROUP
from local.standin.faults import Fault
from local.standin.refusals import Refusal
from tests.cloud_controller.clouds.alicloud.nlb.balancing import NlbAccount, Process, errors
from tests.cloud_controller.clouds.alicloud.nlb.services import ENI, backends, built

POD = "192.168.0.101"


def test_a_load_balancer_that_vanishes_while_it_is_created_is_an_error_that_is_tried_again(account: NlbAccount) -> None:
    account.standin.world.job_seconds = 4.0
    gone = Refusal(404, "ResourceNotFound.loadBalancer", "refused by the test")
    account.standin.faults.add(Fault("nlb.GetLoadBalancerAttribute", error=gone, after=1))
    process = Process(account, patience=6.0)

    (error,) = errors(process.apply(built()))

    assert isinstance(error, Unavailable)
    assert "disappeared" in str(error)
    process.converge(built())
    assert len(account.left()) == 3


@pytest.mark.parametrize("action", ["CreateListener", "CreateServerGroup"])
def test_a_part_whose_job_failed_while_the_load_balancer_was_created_is_made_by_the_next_plan(
    account: NlbAccount, action: str
) -> None:
    process = Process(account)
    account.fail_job(action)

    assert errors(process.apply(built()))
    assert not errors(process.apply(built()))

    assert len(account.left()) == 3
    assert [len(each["servers"]) for each in account.objects(GROUP)] == [2]


# ------------------------------------------------------------------------------------------- pods' network interfaces


def moved(account: NlbAccount, address: str) -> str:
    """Give the address to another network interface, whose ID is returned."""
    with account.standin.changing() as world:
        (old,) = (each for each in world.store.all(machines.ENI) if address in each["addresses"])
        new = machines.add_eni(world, account.vswitch, instance="i-n2")
        (other,) = (each["addresses"] for each in world.store.all(machines.ENI) if each["id"] == new)
        world.fill(machines.ENI, old["id"], addresses=other)
        world.fill(machines.ENI, new, addresses=[address])
        return new


def interfaces_of_servers(account: NlbAccount) -> list[str]:
    (group,) = account.objects(GROUP)
    return [each["ServerId"] for each in group["servers"]]


def test_a_pod_with_the_address_of_a_former_pod_is_reached_through_its_own_interface(account: NlbAccount) -> None:
    account.pod(POD)
    process, by_pod = Process(account), {ENI: "eni"}
    process.converge(built(annotations=by_pod, on=backends(pods={POD: "n1"})))
    process.converge(built(annotations=by_pod, on=backends(pods={})))
    new = moved(account, POD)

    process.converge(built(annotations=by_pod, on=backends(pods={POD: "n2"})))

    assert interfaces_of_servers(account) == [new]


def test_an_address_of_a_deleted_service_may_have_moved(account: NlbAccount) -> None:
    account.pod(POD)
    process, wanted = Process(account), built(annotations={ENI: "eni"}, on=backends(pods={POD: "n1"}))
    process.converge(wanted)
    process.end()
    new = moved(account, POD)
    account.sleep(10)

    process.converge(wanted)

    assert interfaces_of_servers(account) == [new]


@pytest.mark.parametrize("fault", ["refused", "failed"])
def test_an_interface_is_read_again_after_a_failed_addition(account: NlbAccount, fault: str) -> None:
    account.pod(POD)
    process, by_pod = Process(account), {ENI: "eni"}
    process.converge(built(annotations=by_pod, on=backends(pods={})))
    if fault == "refused":
        account.refuse("AddServersToServerGroup", "InvalidParameter")
    else:
        account.fail_job("AddServersToServerGroup")
    wanted = built(annotations=by_pod, on=backends(pods={POD: "n2"}))
    assert errors(process.apply(wanted))
    new = moved(account, POD)

    process.converge(wanted)

    assert interfaces_of_servers(account) == [new]


def test_a_changed_weight_moves_a_pod_to_the_interface_that_has_its_address_now(account: NlbAccount) -> None:
    account.pod(POD)
    process, on = Process(account), backends(pods={POD: "n1"})
    process.converge(built(annotations={ENI: "eni"}, on=on))
    new = moved(account, POD)
    account.sleep(10)

    process.converge(built(annotations={ENI: "eni", "weight": "5"}, on=on))

    assert interfaces_of_servers(account) == [new]


# ------------------------------------------------------------------------------------------------------- certificates


def test_certificates_that_were_added_before_a_failure_are_removed_when_nobody_wants_them_any_more(
    account: NlbAccount,
) -> None:
    names = [f"further-{number}" for number in range(16)]
    with account.standin.changing() as world:
        for name in names:
            add_certificate(world, name)
    tls = {"protocol-port": "tcpssl:80", "cert-id": "cert-1"}
    wanted, process = built(annotations=tls), Process(account)
    process.converge(wanted)
    refused = Refusal(400, "InvalidParameter", "refused by the test")
    account.standin.faults.add(Fault("nlb.AssociateAdditionalCertificatesWithListener", error=refused, after=1))
    assert errors(process.apply(built(annotations={**tls, "additional-cert-ids": ",".join(names)})))

    process.converge(wanted)

    assert Process(account).plan(wanted) == []


# ------------------------------------------------------------------------------------------------- own security group


def put_rules(account: NlbAccount, *rules: dict[str, str]) -> None:
    (own,) = (each for each in account.objects(machines.SECURITY_GROUP) if each["id"] in account.left())
    with account.standin.changing() as world:
        world.fill(machines.SECURITY_GROUP, own["id"], rules=[*rules])


def rules_of(account: NlbAccount) -> list[dict[str, str]]:
    (own,) = (each for each in account.objects(machines.SECURITY_GROUP) if each["id"] in account.left())
    rules: list[dict[str, str]] = own["rules"]
    return rules


@pytest.mark.parametrize(
    "by_hand",
    [
        {"IpProtocol": "TCP", "PortRange": "22/22", "SourceCidrIp": "0.0.0.0/0"},
        {"SourceCidrIp": "", "SourceGroupId": "sg-1"},
        {"SourceCidrIp": "", "SourcePrefixListId": "pl-1"},
        {"SourceCidrIp": "192.0.2.0/24"},
    ],
)
def test_a_rule_opened_by_hand_is_revoked(account: NlbAccount, by_hand: dict[str, str]) -> None:
    wanted = built(loadBalancerSourceRanges=["10.0.0.0/8"])
    Process(account).converge(wanted)
    before = rules_of(account)
    (accepts,) = (each for each in before if each["Policy"] == "accept")
    put_rules(account, *before, {**accepts, "SecurityGroupRuleId": "sgr-by-hand", **by_hand})

    Process(account).converge(wanted)

    assert rules_of(account) == before


def test_ranges_that_could_only_be_added_are_removed_when_the_former_ones_come_back(account: NlbAccount) -> None:
    wanted, process = built(loadBalancerSourceRanges=["10.0.0.0/8"]), Process(account)
    process.converge(wanted)
    before = rules_of(account)
    refused = Refusal(403, "Forbidden.RAM", "refused by the test")
    account.standin.faults.add(Fault("ecs.RevokeSecurityGroup", error=refused))
    assert errors(process.apply(built(loadBalancerSourceRanges=["192.0.2.0/24"])))

    process.converge(wanted)

    assert rules_of(account) == before


@pytest.mark.parametrize("family", ["SourceCidrIp", "Ipv6SourceCidrIp"])
def test_a_refusal_removed_by_hand_is_put_back(account: NlbAccount, family: str) -> None:
    wanted = built(annotations={"ip-version": "DualStack"}, loadBalancerSourceRanges=["10.0.0.0/8"])
    Process(account).converge(wanted)
    before = rules_of(account)
    put_rules(account, *(each for each in before if each["Policy"] == "accept" or not each[family]))
    assert len(rules_of(account)) == len(before) - 1

    Process(account).converge(wanted)

    assert {each[family] for each in rules_of(account)} == {each[family] for each in before}
    assert len(rules_of(account)) == len(before)


# ------------------------------------------------------------------------------------- a node whose machine is gone


def members(account: NlbAccount) -> list[set[str]]:
    return [{server["ServerId"] for server in each["servers"]} for each in account.objects(GROUP)]


def test_a_server_that_went_with_its_machine_keeps_no_other_from_leaving(account: NlbAccount) -> None:
    process = Process(account)
    lb = process.converge(built())
    (pool,), (group,) = lb.model.pools, account.objects(GROUP)
    account.put(GROUP, servers=[each for each in group["servers"] if each["ServerId"] != "i-n1"])

    (result,) = process.nlb.perform(lb, [RemoveMembers(lb.id, pool.name, pool.members)])

    assert result.error is None
    assert members(account) == [set()]

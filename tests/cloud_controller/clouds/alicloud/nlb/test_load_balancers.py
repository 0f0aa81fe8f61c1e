"""Reads and changes of NLBs, by the plans of the core, on the stand-in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloud_controller.cloud import Conflict, NotFound, Postponed
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_UID_TAG, LoadBalancerState, Owner
from cloud_controller.load_balancers.operations import DeleteLoadBalancer, UpdateLoadBalancer
from local.alicloud import machines
from local.alicloud.nlb_jobs import BALANCER, GROUP, LISTENER
from tests.cloud_controller.clouds.alicloud.nlb.balancing import OWNER, NlbAccount, Process, errors
from tests.cloud_controller.clouds.alicloud.nlb.services import ENI, ZONE_H, ZONE_K, backends, built, port

PODS = {"192.168.0.101": "n1", "192.168.0.102": "n2"}


@pytest.fixture
def pods(account: NlbAccount) -> dict[str, str]:
    for address in PODS:
        account.pod(address)
    return PODS


# ------------------------------------------------------------------------------------------------------- creation


def test_a_creation_is_one_change_in_the_fewest_calls(account: NlbAccount) -> None:
    process, wanted = Process(account), built()

    (result,) = process.apply(wanted)

    assert result.error is None
    # One look at the jobs for the group, one for its servers, one for the listener; one at the new load balancer.
    assert account.counts() == {
        "CreateLoadBalancer": 1,
        "GetLoadBalancerAttribute": 1,
        "CreateServerGroup": 1,
        "AddServersToServerGroup": 1,
        "CreateListener": 1,
        "ListAsynJobs": 3,
    }
    assert result.created is not None
    assert result.created.state is LoadBalancerState.READY
    assert result.created.ingress[0].hostname == f"{result.created.id}.cn-hangzhou.nlb.aliyuncsslb.com"
    assert process.plan(wanted) == []
    assert Process(account).plan(wanted) == []


def test_a_range_of_ports_reads_back_as_the_model(account: NlbAccount, pods: dict[str, str]) -> None:
    annotations = {ENI: "eni", "listener-port-range": "1000-2000:80"}
    Process(account).converge(built(annotations=annotations, on=backends(pods=pods)))

    (listener,) = account.objects(LISTENER)
    assert (listener["port"], listener["first"], listener["last"]) == (0, 1000, 2000)
    changed = {**annotations, "listener-port-range": "1000-2500:80"}
    Process(account).converge(built(annotations=changed, on=backends(pods=pods)))
    assert [each["last"] for each in account.objects(LISTENER)] == [2500]


def test_a_load_balancer_that_is_still_being_created_is_finished_by_later_plans(account: NlbAccount) -> None:
    account.standin.world.job_seconds = 8.0
    process, wanted = Process(account, patience=2.0), built(loadBalancerSourceRanges=["10.0.0.0/8"])

    (result,) = process.apply(wanted)

    assert result.error is None
    assert result.created is not None
    assert (result.created.state, result.created.settled) == (LoadBalancerState.PENDING, False)
    assert account.passed <= 2.0
    assert not account.objects(LISTENER)
    account.standin.world.job_seconds = 0.5
    process.converge(wanted)
    assert len(account.left()) == 4


@pytest.mark.parametrize("job_seconds", [0.0, 0.5])
def test_a_load_balancer_whose_creation_fails_is_deleted_and_made_again(
    account: NlbAccount, job_seconds: float
) -> None:
    account.standin.world.job_seconds = job_seconds
    account.fail_job("CreateLoadBalancer", count=None)
    process = Process(account)
    for _ in range(3):
        (error,) = errors(process.apply(built()))
        assert "CreateLoadBalancer" in str(error)
        account.sleep(3)
        assert len(account.objects(BALANCER)) <= 1
    account.standin.faults.clear()

    process.converge(built())

    assert len(account.left()) == 3


# -------------------------------------------------------------------------------------------------------- changes


@pytest.mark.parametrize(
    ("annotations", "actions"),
    [
        ({"idle-timeout": "60"}, {"UpdateListenerAttribute"}),
        ({"scheduler": "rr"}, {"UpdateServerGroupAttribute"}),
        ({"health-check-interval": "9"}, {"UpdateServerGroupAttribute"}),
        ({"weight": "5"}, {"UpdateServerGroupServersAttribute"}),
        ({"name": "other"}, {"UpdateLoadBalancerAttribute"}),
        ({"cross-zone-enabled": "off"}, {"UpdateLoadBalancerAttribute"}),
        ({"delete-protection": "off"}, {"UpdateLoadBalancerProtection"}),
        ({"address-type": "intranet"}, {"UpdateLoadBalancerAddressTypeConfig"}),
        ({"zone-maps": f"{ZONE_K}:vsw-k::eip-1,{ZONE_H}:vsw-h"}, {"UpdateLoadBalancerZones"}),
        ({"zone-maps": f"{ZONE_K}:vsw-k:192.168.2.77,{ZONE_H}:vsw-h"}, {"UpdateLoadBalancerZones"}),
        ({"bandwidth-package-id": "cbwp-1"}, {"AttachCommonBandwidthPackageToLoadBalancer"}),
        ({"security-group-ids": "sg-1"}, {"LoadBalancerJoinSecurityGroup"}),
        ({"additional-resource-tags": "a=b"}, {"TagResources"}),
        (
            {"protocol-port": "tcpssl:80", "cert-id": "cert-1"},
            {"CreateServerGroup", "AddServersToServerGroup", "DeleteListener", "CreateListener", "DeleteServerGroup"},
        ),
    ],
)
def test_a_change_takes_only_the_calls_that_it_needs(
    account: NlbAccount, annotations: dict[str, str], actions: set[str]
) -> None:
    process = Process(account)
    process.converge(built())
    wanted = built(annotations=annotations)

    assert not errors(process.apply(wanted))

    counts = account.counts()
    assert {action: counts[action] for action in counts if not action.startswith(("Get", "List"))} == dict.fromkeys(
        actions, 1
    )
    assert Process(account).plan(wanted) == []
    # And back: an annotation that goes resets what it set, but for tags, security groups and chosen addresses.
    Process(account).converge(built())


def test_a_load_balancer_leaves_its_bandwidth_package_before_it_becomes_private(account: NlbAccount) -> None:
    process = Process(account)
    process.converge(built(annotations={"bandwidth-package-id": "cbwp-1"}))

    process.converge(built(annotations={"address-type": "intranet"}))

    (lb,) = account.objects(BALANCER)
    assert (lb["address_type"], lb["package"]) == ("Intranet", "")


def test_a_zone_that_is_no_longer_named_is_left(account: NlbAccount) -> None:
    with account.standin.changing() as world:
        machines.add_vswitch(world, "vpc-cluster", "cn-hangzhou-i", "192.168.3.0/24", id="vsw-i")
    process = Process(account)
    process.converge(built(annotations={"zone-maps": f"{ZONE_K}:vsw-k,{ZONE_H}:vsw-h,cn-hangzhou-i:vsw-i"}))

    process.converge(built())

    (lb,) = account.objects(BALANCER)
    assert sorted(each["zone"] for each in lb["zones"]) == [ZONE_H, ZONE_K]


def test_a_change_from_ip_to_instance_makes_one_new_group_and_deletes_the_old(
    account: NlbAccount, pods: dict[str, str]
) -> None:
    on = backends(pods=pods)
    Process(account).converge(built(annotations={ENI: "eni", "server-group-type": "Ip"}, on=on))

    Process(account).converge(built(annotations={ENI: "eni"}, on=on))

    (group,), (listener,) = account.objects(GROUP), account.objects(LISTENER)
    assert (group["ServerGroupType"], listener["ServerGroupId"]) == ("Instance", group["id"])
    assert Process(account).plan(built(annotations={ENI: "eni"}, on=on)) == []


def test_drift_by_hand_is_seen_and_mended(account: NlbAccount) -> None:
    process, wanted = Process(account), built()
    process.converge(wanted)
    (group,) = account.objects(GROUP)
    account.put(LISTENER, status="Stopped", Cps=7)
    account.put(BALANCER, cross_zone=False)
    account.put(GROUP, Scheduler="rr", servers=group["servers"][1:])

    process.converge(wanted)

    (lb,), (listener,), (group,) = (account.objects(kind) for kind in (BALANCER, LISTENER, GROUP))
    assert (listener["status"], listener["Cps"], lb["cross_zone"]) == ("Running", 0, True)
    assert (group["Scheduler"], len(group["servers"])) == ("Wrr", 2)


def test_many_members_are_added_two_hundred_at_a_time(account: NlbAccount) -> None:
    with account.standin.changing() as world:
        machines.add_vswitch(world, "vpc-cluster", "cn-hangzhou-i", "192.168.8.0/21", id="vsw-big")
        for number in range(4, 453):
            machines.add_instance(world, "vsw-big", id=f"i-n{number}")
    world.quotas.servers = 1000
    many = backends(*(f"n{number}" for number in range(1, 453)))
    process = Process(account)
    process.converge(built())

    assert not errors(process.apply(built(on=many)))

    counts = account.counts()
    assert (counts["AddServersToServerGroup"], counts["RemoveServersFromServerGroup"]) == (3, 0)
    assert process.plan(built(on=many)) == []
    assert Process(account).plan(built(on=many)) == []


def test_pods_without_a_network_interface_wait_and_the_others_are_added(account: NlbAccount) -> None:
    first, second = PODS
    account.pod(first)
    process, wanted = Process(account), built(annotations={ENI: "eni"}, on=backends(pods=PODS))

    process.apply(wanted)

    (group,) = account.objects(GROUP)
    assert [each["ServerIp"] for each in group["servers"]] == [first]
    account.pod(second)
    assert len(process.converge(wanted).model.pools[0].members) == 2


# ----------------------------------------------------------------------------------------------------------- jobs


def test_a_job_that_takes_long_postpones_what_follows_it(account: NlbAccount) -> None:
    process = Process(account)
    process.converge(built())
    account.standin.world.job_seconds = 60.0
    wanted = built(port(80), port(90))
    before = account.passed

    results = process.apply(wanted)

    assert results
    assert [type(each) for each in errors(results)] == [Postponed] * len(results)
    assert account.passed - before <= 2.0
    account.standin.world.job_seconds = 0.0
    account.sleep(60)
    process.converge(wanted)
    assert len(account.left()) == 5


@pytest.mark.parametrize("action", ["AddServersToServerGroup", "CreateListener", "CreateServerGroup"])
def test_a_job_that_fails_is_an_error_and_what_it_should_have_done_is_planned_again(
    account: NlbAccount, action: str
) -> None:
    process = Process(account)
    process.converge(built())
    account.fail_job(action)
    wanted = built(port(80), port(90), on=backends("n1", "n2", "n3"))

    failed, *_ = errors(process.apply(wanted))

    assert action in str(failed)
    assert "failed" in str(failed)
    assert not isinstance(failed, Postponed)
    found = process.converge(wanted)
    assert [len(pool.members) for pool in found.model.pools] == [3, 3]


def test_a_listener_that_is_being_configured_is_waited_for(account: NlbAccount) -> None:
    process = Process(account, patience=2.0)
    process.converge(built())
    account.refuse("UpdateListenerAttribute", "IncorrectStatus.listener")

    assert not errors(process.apply(built(annotations={"cps": "5"})))

    account.refuse("UpdateListenerAttribute", "IncorrectStatus.listener", count=None)
    (error,) = errors(process.apply(built(annotations={"cps": "6"})))
    assert isinstance(error, Postponed)


# -------------------------------------------------------------------------------------------------------- clients


def test_source_ranges_are_admitted_by_a_group_of_the_load_balancers_own(account: NlbAccount) -> None:
    process = Process(account)
    process.converge(built(loadBalancerSourceRanges=["203.0.113.0/24", "9.0.0.0/8"]))

    def rules() -> set[tuple[str, str]]:
        (lb,) = account.objects(BALANCER)
        (group,) = (each for each in account.objects(machines.SECURITY_GROUP) if each["id"] in lb["groups"])
        return {(rule["Policy"], rule["SourceCidrIp"]) for rule in group["rules"]}

    everybody = ("drop", "0.0.0.0/0")
    assert rules() == {("accept", "203.0.113.0/24"), ("accept", "9.0.0.0/8"), everybody}
    process.converge(built(loadBalancerSourceRanges=["203.0.113.0/24", "192.0.2.0/24"]))
    assert rules() == {("accept", "203.0.113.0/24"), ("accept", "192.0.2.0/24"), everybody}
    process.converge(built())
    assert len(account.left()) == 3


def test_clients_are_limited_before_the_first_listener_exists(account: NlbAccount) -> None:
    account.refuse("LoadBalancerJoinSecurityGroup", "InvalidParameter")
    process = Process(account)
    wanted = built(annotations={"ip-version": "DualStack"}, loadBalancerSourceRanges=["10.0.0.0/8"])

    assert errors(process.apply(wanted))

    assert not account.objects(LISTENER)
    (own,) = (each for each in account.objects(machines.SECURITY_GROUP) if each["id"] in account.left())
    assert {rule["Ipv6SourceCidrIp"] for rule in own["rules"]} == {"", "::/0"}
    process.converge(wanted)
    assert len(account.left()) == 4


def test_security_groups_of_others_are_never_changed(account: NlbAccount) -> None:
    process = Process(account)
    process.converge(built())
    account.put(BALANCER, groups=["sg-by-hand"])

    process.converge(built())
    process.converge(built(loadBalancerSourceRanges=["10.0.0.0/8"]))
    process.converge(built())

    assert account.objects(BALANCER)[0]["groups"] == ["sg-by-hand"]
    process.converge(built(annotations={"security-group-ids": ""}))
    assert account.objects(BALANCER)[0]["groups"] == []
    assert {"sg-1", "sg-by-hand"} <= {each["id"] for each in account.objects(machines.SECURITY_GROUP)}


# ------------------------------------------------------------------------------------------------ deletion, owners


@pytest.mark.parametrize("ranges", [[], ["10.0.0.0/8"]])
@pytest.mark.parametrize("job_seconds", [0.0, 4.0])
def test_a_deletion_leaves_nothing(account: NlbAccount, ranges: list[str], job_seconds: float) -> None:
    process = Process(account)
    process.converge(built(port(80), port(443), loadBalancerSourceRanges=ranges))
    account.standin.world.job_seconds = job_seconds

    process.end()

    assert account.left() == []


def test_what_is_changed_or_deleted_is_settled_when_its_jobs_are_done(account: NlbAccount) -> None:
    process = Process(account)
    process.converge(built())

    results = process.apply(built(port(80), port(443), annotations={"scheduler": "rr"}))
    results += process.apply(None)

    assert len(results) > 3
    assert all(each.settled and each.error is None for each in results)


def test_a_deletion_is_few_calls(account: NlbAccount) -> None:
    process = Process(account)
    process.converge(built())

    assert not errors(process.apply(None))

    assert account.counts() == {
        "GetLoadBalancerAttribute": 1,
        "UpdateLoadBalancerProtection": 1,
        "DeleteLoadBalancer": 1,
        "DeleteServerGroup": 1,
        "ListAsynJobs": 2,
    }


def test_server_groups_that_a_deletion_left_are_found_and_deleted(account: NlbAccount) -> None:
    process = Process(account)
    process.converge(built())
    account.refuse("DeleteServerGroup", "ResourceInUse.ServerGroup")

    (error,) = errors(process.apply(None))

    assert isinstance(error, Postponed)
    (left,) = Process(account).observed()
    assert (left.state, left.owner) == (LoadBalancerState.PARTIAL, OWNER)
    (result,) = Process(account).nlb.perform(left, [DeleteLoadBalancer(left.id)])
    assert (result.error, result.settled) == (None, False), "lists may lack some"
    Process(account).end()
    assert account.left() == []


def test_nothing_of_another_owner_is_changed_or_deleted(account: NlbAccount) -> None:
    process = Process(account)
    found = process.converge(built())
    account.put(BALANCER, tags={CLUSTER_TAG: "c2", SERVICE_UID_TAG: "u"})

    for operation in (DeleteLoadBalancer(found.id), UpdateLoadBalancer(found.id, found.model)):
        (error,) = errors(process.nlb.perform(found, [operation]))
        assert isinstance(error, Conflict)

    assert len(account.left()) == 3
    (missing,) = errors(process.nlb.perform(found, [UpdateLoadBalancer("nlb-none", found.model)]))
    assert isinstance(missing, NotFound)


def test_a_preserved_load_balancer_loses_its_owner_and_nothing_else(account: NlbAccount) -> None:
    process = Process(account)
    found = process.converge(built(port(80), port(443)))
    free = replace(found.model, tags=OWNER.released(found.model.tags))
    account.counts()

    assert not errors(process.nlb.perform(found, [UpdateLoadBalancer(found.id, free)]))

    # One call of each for the load balancer, for both listeners and for both server groups.
    assert account.counts() == {"GetLoadBalancerAttribute": 1, "TagResources": 3, "UntagResources": 3}
    assert process.observed() == []
    assert len(account.left()) == 5
    for each in (each for kind in (BALANCER, LISTENER, GROUP) for each in account.objects(kind)):
        assert Owner.of_tags(each["tags"]) is None
        assert each["tags"]["cloud-controller/preserved-from"] == "c1/default/web"


def test_a_reused_load_balancer_is_read_with_what_is_the_users(account: NlbAccount) -> None:
    made = Process(account).converge(built())
    for kind in (BALANCER, LISTENER, GROUP):
        account.put(kind, tags={})

    (found,) = Process(account).nlb.read((), [made.id])

    (group,) = account.objects(GROUP)
    assert (found.owner, found.network) == (None, "vpc-cluster")
    assert [(each.port, each.pool) for each in found.model.listeners] == [(80, group["id"])]
    assert [pool.name for pool in found.model.pools] == [group["id"]]


# --------------------------------------------------------------------------------------------------------- health


def test_health_is_known_of_members_that_were_checked(account: NlbAccount) -> None:
    process = Process(account)
    found = process.converge(built())
    account.standin.world.unhealthy.add(("i-n2", 30080))

    assert process.nlb.health(found.id) == {("tcp-80", "i-n1", 30080): True, ("tcp-80", "i-n2", 30080): False}

    process.converge(built(annotations={"health-check-flag": "off"}))
    assert {*process.nlb.health(found.id).values()} == {True}


def test_nothing_is_read_for_nobody(account: NlbAccount) -> None:
    process = Process(account)
    account.counts()

    assert process.nlb.read(()) == []

    assert not account.counts()

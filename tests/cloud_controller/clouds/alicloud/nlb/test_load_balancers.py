"""Reads and changes of NLBs, by the plans of the core."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from cloud_controller.cloud import CloudError, Conflict, NotFound, Postponed
from cloud_controller.clouds.alicloud.nlb.annotations import NLB
from cloud_controller.clouds.alicloud.nlb.load_balancers import NetworkLoadBalancers
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.diff import diff
from cloud_controller.load_balancers.model import Built, LoadBalancerState, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.operations import DeleteLoadBalancer, OperationResult, UpdateLoadBalancer
from tests.cloud_controller.clouds.alicloud.nlb.scripted_nlb import ScriptedNlb
from tests.cloud_controller.clouds.alicloud.nlb.services import ENI, backends, built, port

OWNER = Owner("c1", "uid-1", "default", "web")
PODS = {"10.1.0.1": "n1", "10.1.0.2": "n2"}
EVERYTHING = {
    "zone-maps": "k:vsw-k:192.168.0.9:eip-1,h:vsw-h",
    "ip-version": "DualStack",
    "ipv6-address-type": "internet",
    "name": "edge",
    "bandwidth-package-id": "cbwp-1",
    "resource-group-id": "rg-1",
    "cross-zone-enabled": "off",
    "delete-protection": "off",
    "modification-protection": "NonProtection",
    "cps": "5",
    "idle-timeout": "60",
    "proxy-protocol": "on",
    "ppv2-pvl-vpc-id-enabled": "on",
    "protocol-port": "tcpssl:443",
    "cert-id": "cert-1",
    "additional-cert-ids": "cert-3,cert-2",
    "cacert": "on",
    "cacert-id": "ca-1",
    "alpn": "on",
    "alpn-policy": "HTTP2Only",
    "tls-cipher-policy": "tls_cipher_policy_1_2",
    "scheduler": "wlc",
    "weight": "7",
    "connection-drain": "on",
    "connection-drain-timeout": "30",
    "health-check-type": "http",
    "health-check-httpcode": "http_2xx,http_3xx",
    "health-check-method": "HEAD",
    "additional-resource-tags": "a=b",
}


class Cluster:
    """A cluster on a scripted account. Each is a process of its own: it remembers nothing of another."""

    def __init__(self, api: ScriptedNlb, patience: float = 1.0) -> None:
        self.api = api
        self.cluster_id, self.vpc_id = "c1", "vpc-1"
        self.slept = 0.0
        self.now = 0.0
        self.nlb = NetworkLoadBalancers(
            api, self, Cache(lambda: self.now), ConcurrentCalls(2), patience=patience, sleep=self._sleep
        )

    def _sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.now += seconds

    def observed(self) -> list[ObservedLoadBalancer]:
        return self.nlb.read([OWNER.uid])

    def plan(self, wanted: Built | None) -> list[Any]:
        model = wanted.model if wanted else None
        found = diff(model, self.observed(), NLB, target="service/default/web", client_token=OWNER.client_token)
        return [action.operation for action in found if action.operation is not None]

    def apply(self, wanted: Built | None) -> list[OperationResult]:
        operations = self.plan(wanted)
        return self.nlb.perform(None, operations) if operations else []

    def converge(self, wanted: Built | None) -> ObservedLoadBalancer | None:
        """Apply until nothing is left to do."""
        for _ in range(9):
            self.api.counts()
            results = self.apply(wanted)
            done = not results and all(lb.settled for lb in self.observed())
            if done:
                return next(iter(self.observed()), None)
        raise AssertionError([(type(each.operation).__name__, each.error) for each in results])


@pytest.fixture
def api() -> ScriptedNlb:
    return ScriptedNlb()


def errors(results: Iterable[OperationResult]) -> list[CloudError]:
    return [each.error for each in results if each.error is not None]


def test_a_creation_is_one_change_in_the_fewest_calls(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    wanted = built()
    operations = cluster.plan(wanted)
    api.counts()

    (result,) = cluster.nlb.perform(None, operations)

    assert result.error is None
    # One job list for the group, one for its servers, one for the listener.
    assert api.counts() == {
        "CreateLoadBalancer": 1,
        "GetLoadBalancerAttribute": 1,
        "CreateServerGroup": 1,
        "ListAsynJobs": 3,
        "AddServersToServerGroup": 1,
        "CreateListener": 1,
    }
    assert result.created is not None
    assert (result.created.state, result.created.ingress[0].hostname) == (
        LoadBalancerState.READY,
        "nlb-0001.example.com",
    )
    assert cluster.plan(wanted) == []
    assert Cluster(api).plan(wanted) == []


@pytest.mark.parametrize("annotations", [{}, EVERYTHING, {ENI: "eni"}, {ENI: "eni", "server-group-type": "Ip"}])
def test_what_is_created_reads_back_as_the_model(api: ScriptedNlb, annotations: dict[str, str]) -> None:
    api.enis = dict.fromkeys(PODS, "eni-1")
    wanted = built(port(443), port(80), port(53, "UDP"), annotations=annotations, on=backends(pods=PODS))

    found = Cluster(api).converge(wanted)

    assert found is not None
    assert Cluster(api).plan(wanted) == []
    assert found.model.attributes.items() >= wanted.model.attributes.items()


def test_a_range_of_ports_reads_back_as_the_model(api: ScriptedNlb) -> None:
    api.enis = dict.fromkeys(PODS, "eni-1")
    annotations = {ENI: "eni", "listener-port-range": "1000-2000:80"}
    wanted = built(annotations=annotations, on=backends(pods=PODS))

    Cluster(api).converge(wanted)

    (listener,) = api.listeners.values()
    assert (listener["ListenerPort"], listener["StartPort"], listener["EndPort"]) == (0, 1000, 2000)
    changed = built(annotations={**annotations, "listener-port-range": "1000-2500:80"}, on=backends(pods=PODS))
    Cluster(api).converge(changed)
    assert [each["EndPort"] for each in api.listeners.values()] == [2500]


def test_everything_is_tagged_with_its_owner_when_it_is_created(api: ScriptedNlb) -> None:
    Cluster(api).converge(built(loadBalancerSourceRanges=["10.0.0.0/8"]))

    for kind in (api.lbs, api.listeners, api.groups, api.security_groups):
        for each in kind.values():
            assert OWNER.owns({tag["Key"]: tag["Value"] for tag in each["Tags"]})


@pytest.mark.parametrize(
    ("annotations", "spec", "actions"),
    [
        ({"idle-timeout": "60"}, {}, ["UpdateListenerAttribute"]),
        ({"scheduler": "rr"}, {}, ["UpdateServerGroupAttribute"]),
        ({"health-check-interval": "9"}, {}, ["UpdateServerGroupAttribute"]),
        ({"weight": "5"}, {}, ["UpdateServerGroupServersAttribute"]),
        ({"name": "other"}, {}, ["UpdateLoadBalancerAttribute"]),
        ({"cross-zone-enabled": "off"}, {}, ["UpdateLoadBalancerAttribute"]),
        ({"delete-protection": "off"}, {}, ["UpdateLoadBalancerProtection"]),
        ({"address-type": "intranet"}, {}, ["UpdateLoadBalancerAddressTypeConfig"]),
        ({"zone-maps": "cn-hangzhou-k:vsw-k"}, {}, ["UpdateLoadBalancerZones"]),
        ({"zone-maps": "cn-hangzhou-k:vsw-k::eip-9,cn-hangzhou-h:vsw-h"}, {}, ["UpdateLoadBalancerZones"]),
        ({"bandwidth-package-id": "cbwp-1"}, {}, ["AttachCommonBandwidthPackageToLoadBalancer"]),
        ({"security-group-ids": "sg-1"}, {}, ["LoadBalancerJoinSecurityGroup"]),
        ({"additional-resource-tags": "a=b"}, {}, ["TagResources"]),
        (
            {"protocol-port": "tcpssl:80", "cert-id": "cert-1"},
            {},
            [
                *("CreateServerGroup", "AddServersToServerGroup", "DeleteListener", "CreateListener"),
                "DeleteServerGroup",
            ],
        ),
    ],
)
def test_a_change_takes_only_the_calls_that_it_needs(
    api: ScriptedNlb, annotations: dict[str, str], spec: dict[str, Any], actions: list[str]
) -> None:
    cluster = Cluster(api)
    cluster.converge(built())
    wanted = built(annotations=annotations, **spec)
    operations = cluster.plan(wanted)
    api.counts()

    assert not errors(cluster.nlb.perform(None, operations))

    reads = ("ListAsynJobs", "GetLoadBalancerAttribute")
    assert [action for action, _ in api.calls if action not in reads] == actions
    assert Cluster(api).plan(wanted) == []
    # And back: an annotation that goes resets what it set, but for tags and security groups.
    if not {"additional-resource-tags", "security-group-ids"} & annotations.keys():
        Cluster(api).converge(built())


def test_a_zone_that_is_no_longer_named_is_left(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    cluster.converge(built())

    cluster.converge(built(annotations={"zone-maps": "cn-hangzhou-k:vsw-k"}))

    (lb,) = api.lbs.values()
    assert [each["ZoneId"] for each in lb["ZoneMappings"]] == ["cn-hangzhou-k"]


def test_a_change_from_ip_to_instance_makes_one_new_group_and_deletes_the_old(api: ScriptedNlb) -> None:
    api.enis = dict.fromkeys(PODS, "eni-1")
    on = backends(pods=PODS)
    Cluster(api).converge(built(annotations={ENI: "eni", "server-group-type": "Ip"}, on=on))

    Cluster(api).converge(built(annotations={ENI: "eni"}, on=on))

    (group,), (listener,) = api.groups.values(), api.listeners.values()
    assert (group["ServerGroupType"], listener["ServerGroupId"]) == ("Instance", group["ServerGroupId"])


def test_drift_by_hand_is_seen_and_mended(api: ScriptedNlb) -> None:
    cluster, wanted = Cluster(api), built()
    cluster.converge(wanted)
    (lb,), (listener,), (group,), ((first, *_),) = (
        api.lbs.values(),
        api.listeners.values(),
        api.groups.values(),
        api.servers.values(),
    )
    listener |= {"ListenerStatus": "Stopped", "Cps": 7}
    lb |= {"CrossZoneEnabled": False}
    group |= {"Scheduler": "rr"}
    api.RemoveServersFromServerGroup(group["ServerGroupId"], [first])

    cluster.converge(wanted)

    assert (listener["ListenerStatus"], listener["Cps"], lb["CrossZoneEnabled"]) == ("Running", 0, True)
    assert (group["Scheduler"], len(api.servers[group["ServerGroupId"]])) == ("Wrr", 2)


def test_a_settled_service_costs_three_lists(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    cluster.converge(built())
    api.counts()

    cluster.observed()

    assert api.counts() == {"ListLoadBalancers": 1, "ListServerGroups": 1, "ListListeners": 1}


def test_a_load_balancer_that_is_still_being_created_is_finished_by_later_plans(api: ScriptedNlb) -> None:
    api.provisioning_looks = 9
    cluster, wanted = Cluster(api, patience=2.0), built(loadBalancerSourceRanges=["10.0.0.0/8"])

    (result,) = cluster.apply(wanted)

    assert result.error is None
    assert result.created is not None
    assert (result.created.state, result.created.settled) == (LoadBalancerState.PENDING, False)
    assert cluster.slept <= 2.0
    assert not api.listeners
    cluster.converge(wanted)
    assert len(api.listeners) == len(api.groups) == len(api.lbs) == 1


def test_a_job_that_takes_long_postpones_what_follows_it(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    cluster.converge(built())
    api.job_looks = 99
    wanted = built(port(80), port(90))

    results = cluster.apply(wanted)

    assert results
    assert all(isinstance(error, Postponed) for error in errors(results))
    assert len(errors(results)) == len(results)
    assert cluster.slept <= 2.0
    api.job_looks = 0
    cluster.converge(wanted)
    assert len(api.listeners) == len(api.groups) == 2


def test_a_job_that_fails_is_an_error_and_what_it_should_have_done_is_planned_again(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    cluster.converge(built())
    api.failing = {"AddServersToServerGroup"}
    wanted = built(on=backends("n1", "n2", "n3"))

    (error,) = errors(cluster.apply(wanted))

    assert "AddServersToServerGroup" in str(error)
    assert "failed" in str(error)
    assert not isinstance(error, Postponed)
    api.failing = set()
    found = cluster.converge(wanted)
    assert found is not None
    assert len(found.model.pools[0].members) == 3


def test_a_group_that_is_being_configured_is_waited_for(api: ScriptedNlb) -> None:
    cluster = Cluster(api, patience=2.0)
    cluster.converge(built())
    api.refuse["UpdateListenerAttribute"] = ["IncorrectStatus.Listener"]

    assert not errors(cluster.apply(built(annotations={"cps": "5"})))

    api.refuse["UpdateListenerAttribute"] = ["IncorrectStatus.Listener"] * 99
    (error,) = errors(cluster.apply(built(annotations={"cps": "6"})))
    assert isinstance(error, Postponed)


def test_a_refused_setting_does_not_keep_new_members_out(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    cluster.converge(built())
    api.refuse["UpdateServerGroupAttribute"] = ["InvalidParameter"]

    results = cluster.apply(built(annotations={"scheduler": "rr"}, on=backends("n1", "n2", "n3")))

    assert len(errors(results)) == 1
    assert [len(each) for each in api.servers.values()] == [3]


def test_many_members_are_added_two_hundred_at_a_time(api: ScriptedNlb) -> None:
    many = backends(*(f"n{number}" for number in range(450)))
    cluster = Cluster(api)
    cluster.converge(built())
    operations = cluster.plan(built(on=many))
    api.counts()

    assert not errors(cluster.nlb.perform(None, operations))

    counts = api.counts()
    assert (counts["AddServersToServerGroup"], counts["RemoveServersFromServerGroup"]) == (3, 0)
    assert cluster.plan(built(on=many)) == []


def test_pods_without_a_network_interface_wait_and_the_others_are_added(api: ScriptedNlb) -> None:
    api.enis = {"10.1.0.1": "eni-1"}
    cluster, wanted = Cluster(api), built(annotations={ENI: "eni"}, on=backends(pods=PODS))

    cluster.apply(wanted)

    assert [[server["ServerIp"] for server in each] for each in api.servers.values()] == [["10.1.0.1"]]
    api.enis["10.1.0.2"] = "eni-2"
    found = cluster.converge(wanted)
    assert found is not None
    assert len(found.model.pools[0].members) == 2


def test_source_ranges_are_admitted_by_a_group_of_the_load_balancers_own(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    cluster.converge(built(loadBalancerSourceRanges=["203.0.113.0/24", "198.51.100.0/24"]))

    (lb,), ((group_id, group),) = api.lbs.values(), api.security_groups.items()
    assert lb["SecurityGroupIds"] == [group_id]
    assert {(rule["Policy"], rule["SourceCidrIp"]) for rule in group["rules"]} == {
        *(("accept", "203.0.113.0/24"), ("accept", "198.51.100.0/24")),
        ("drop", "0.0.0.0/0"),
    }
    cluster.converge(built(loadBalancerSourceRanges=["203.0.113.0/24", "192.0.2.0/24"]))
    assert [r["SourceCidrIp"] for r in group["rules"] if r["Policy"] == "accept"] == ["203.0.113.0/24", "192.0.2.0/24"]
    cluster.converge(built())
    assert not api.security_groups
    assert lb["SecurityGroupIds"] == []


def test_clients_are_limited_before_the_first_listener_exists(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    cluster.apply(built(annotations={"ip-version": "DualStack"}, loadBalancerSourceRanges=["10.0.0.0/8"]))

    order = [action for action, _ in api.calls]
    steps = ("CreateSecurityGroup", "AuthorizeSecurityGroup", "LoadBalancerJoinSecurityGroup", "CreateListener")
    assert sorted(steps, key=order.index) == [*steps]
    (group,) = api.security_groups.values()
    assert {rule["Ipv6SourceCidrIp"] for rule in group["rules"] if "Ipv6SourceCidrIp" in rule} == {"::/0"}


def test_security_groups_of_others_are_never_changed(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    cluster.converge(built())
    (lb,) = api.lbs.values()
    lb["SecurityGroupIds"] = ["sg-by-hand"]

    cluster.converge(built())
    cluster.converge(built(loadBalancerSourceRanges=["10.0.0.0/8"]))
    cluster.converge(built())

    assert lb["SecurityGroupIds"] == ["sg-by-hand"]
    cluster.converge(built(annotations={"security-group-ids": ""}))
    assert lb["SecurityGroupIds"] == []


@pytest.mark.parametrize("ranges", [[], ["10.0.0.0/8"]])
def test_a_deletion_leaves_nothing(api: ScriptedNlb, ranges: list[str]) -> None:
    cluster = Cluster(api)
    cluster.converge(built(port(80), port(443), loadBalancerSourceRanges=ranges))

    assert cluster.converge(None) is None

    assert not any((api.lbs, api.listeners, api.groups, api.security_groups))


def test_a_deletion_is_few_calls(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    cluster.converge(built())
    operations = cluster.plan(None)
    api.counts()

    assert not errors(cluster.nlb.perform(None, operations))

    assert api.counts() == {
        "GetLoadBalancerAttribute": 1,
        "UpdateLoadBalancerProtection": 1,
        "DeleteLoadBalancer": 1,
        "DeleteServerGroup": 1,
        "ListAsynJobs": 2,
    }


def test_server_groups_that_a_deletion_left_are_found_and_deleted(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    cluster.converge(built())
    api.refuse["DeleteServerGroup"] = ["ResourceInUse.serverGroup"]

    (error,) = errors(cluster.apply(None))

    assert isinstance(error, Postponed)
    (left,) = Cluster(api).observed()
    assert (left.state, left.owner) == (LoadBalancerState.PARTIAL, OWNER)
    assert Cluster(api).converge(None) is None
    assert not api.groups


def test_a_load_balancer_deleted_by_hand_is_made_again(api: ScriptedNlb) -> None:
    cluster, wanted = Cluster(api), built()
    cluster.converge(wanted)
    (lb_id,) = api.lbs
    api.lbs[lb_id]["DeletionProtectionConfig"] = {"Enabled": False}
    api.DeleteLoadBalancer(lb_id)

    found = cluster.converge(wanted)

    assert found is not None
    assert found.id != lb_id
    assert len(api.lbs) == len(api.groups) == len(api.listeners) == 1


def test_a_creation_with_the_same_token_makes_no_second_load_balancer(api: ScriptedNlb) -> None:
    operations = Cluster(api).plan(built())

    created = [Cluster(api).nlb.perform(None, operations)[0].created for _ in range(2)]

    assert created[0] is not None
    assert created[1] is not None
    assert created[0].id == created[1].id
    assert len(api.lbs) == len(api.groups) == len(api.listeners) == 1


@pytest.mark.parametrize("action", ["CreateServerGroup", "AddServersToServerGroup", "CreateListener"])
def test_a_creation_that_was_refused_halfway_is_finished(api: ScriptedNlb, action: str) -> None:
    api.refuse[action] = ["InvalidParameter"]

    assert len(errors(Cluster(api).apply(built()))) == 1

    Cluster(api).converge(built())
    assert len(api.lbs) == len(api.groups) == len(api.listeners) == 1


def test_nothing_of_another_owner_is_changed_or_deleted(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    found = cluster.converge(built())
    assert found is not None
    (lb,) = api.lbs.values()
    lb["Tags"] = [{"Key": "kubernetes.io/cluster", "Value": "c2"}, {"Key": "kubernetes.io/service-uid", "Value": "u"}]

    for operation in (DeleteLoadBalancer(found.id), UpdateLoadBalancer(found.id, found.model)):
        (error,) = errors(cluster.nlb.perform(found, [operation]))
        assert isinstance(error, Conflict)

    assert api.lbs
    (missing,) = errors(cluster.nlb.perform(found, [UpdateLoadBalancer("nlb-none", found.model)]))
    assert isinstance(missing, NotFound)


def test_a_preserved_load_balancer_loses_its_owner_and_nothing_else(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    found = cluster.converge(built())
    assert found is not None
    free = replace(found.model, tags=OWNER.released(found.model.tags))

    assert not errors(cluster.nlb.perform(found, [UpdateLoadBalancer(found.id, free)]))

    assert cluster.observed() == []
    assert len(api.lbs) == len(api.groups) == len(api.listeners) == 1
    for each in (*api.lbs.values(), *api.groups.values(), *api.listeners.values()):
        tags = {tag["Key"]: tag["Value"] for tag in each["Tags"]}
        assert Owner.of_tags(tags) is None
        assert tags["cloud-controller/preserved-from"] == "c1/default/web"


def test_a_reused_load_balancer_keeps_what_is_the_users(api: ScriptedNlb) -> None:
    user = api.CreateLoadBalancer(ZoneMappings=[], Tag=[], LoadBalancerName="user", VpcId="vpc-1")["LoadbalancerId"]
    group = api.CreateServerGroup(Tag=[], HealthCheckConfig={}, Protocol="TCP")["ServerGroupId"]
    api.CreateListener(Tag=[], LoadBalancerId=user, ListenerPort=8443, ListenerProtocol="TCP", ServerGroupId=group)
    cluster = Cluster(api)

    (found,) = cluster.nlb.read((), [user])

    assert (found.owner, found.network) == (None, "vpc-1")
    assert [(each.port, each.pool) for each in found.model.listeners] == [(8443, group)]
    assert [pool.name for pool in found.model.pools] == [group]


def test_health_is_known_of_members_that_were_checked(api: ScriptedNlb) -> None:
    cluster = Cluster(api)
    found = cluster.converge(built(on=backends("n1", "n2", "n3")))
    assert found is not None
    api.unhealthy = [
        {"ServerId": "i-n2", "Port": 30080, "Status": "Unhealthy"},
        {"ServerId": "i-n3", "Port": 30080, "Status": "Initial"},
    ]

    health = cluster.nlb.health(found.id)

    assert health == {("tcp-80", "i-n1", 30080): True, ("tcp-80", "i-n2", 30080): False}


def test_nothing_is_read_for_nobody(api: ScriptedNlb) -> None:
    assert Cluster(api).nlb.read(()) == []
    assert not api.calls
    assert Backends()

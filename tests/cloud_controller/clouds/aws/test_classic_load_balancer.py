"""Classic load balancers on a simulated AWS: what a Service's visit calls, and what stands there afterwards."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.build_classic import POOL
from cloud_controller.clouds.aws.names import load_balancer_name
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends, Member
from cloud_controller.load_balancers.model import LoadBalancerState
from cloud_controller.load_balancers.operations import AddMembers, CreateLoadBalancer, RemoveMembers
from tests.cloud_controller.clouds.aws import classic_as_aws
from tests.cloud_controller.clouds.aws.asked_services import backends, classic, named, node, port
from tests.cloud_controller.clouds.aws.conftest import CLUSTER_TAG, AwsAccount
from tests.cloud_controller.clouds.aws.crashing import Process, owner_of

GROUP = {"ec2 CreateSecurityGroup": 1, "ec2 AuthorizeSecurityGroupIngress": 1}
"""What the group in front of a load balancer costs."""


@pytest.fixture(autouse=True)
def _as_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    classic_as_aws.mend(monkeypatch)


def nodes_of(account: AwsAccount, count: int = 2) -> Backends:
    return backends(*(node(provider_id=f"aws:///a/{each['InstanceId']}") for each in account.launch(count)))


def certificate(account: AwsAccount, domain: str = "example.com") -> str:
    acm = boto3.client("acm", region_name="eu-central-1", endpoint_url=account.endpoint)
    return str(acm.request_certificate(DomainName=domain)["CertificateArn"])


def described(account: AwsAccount) -> Any:
    (found,) = account.elb.describe_load_balancers()["LoadBalancerDescriptions"]
    return found


def attributes(account: AwsAccount) -> Any:
    name = described(account)["LoadBalancerName"]
    return account.elb.describe_load_balancer_attributes(LoadBalancerName=name)["LoadBalancerAttributes"]


def tags(account: AwsAccount) -> dict[str, str]:
    name = described(account)["LoadBalancerName"]
    (found,) = account.elb.describe_tags(LoadBalancerNames=[name])["TagDescriptions"]
    return {tag["Key"]: tag["Value"] for tag in found["Tags"]}


def made(account: AwsAccount, service: Object, members: Backends) -> Process:
    """A process that has made the load balancer of the Service; its calls are counted from now on."""
    process = Process(account)
    process.converge(service, members)
    process.calls.clear()
    return process


def writes(process: Process, service: Object, members: Backends) -> dict[str, int]:
    """The changing calls of a visit, after which nothing is left to do."""
    process.visit(service, members)
    counted = dict(process.calls.writes)
    assert process.operations(service, members) == []
    return counted


# ------------------------------------------------------------------------------------------------------------ creation


def test_a_load_balancer_is_made_with_its_groups_its_check_and_its_instances(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = Process(account)

    assert writes(process, classic(), members) == {
        "ec2 CreateSecurityGroup": 2,
        "ec2 AuthorizeSecurityGroupIngress": 2,
        "elb CreateLoadBalancer": 1,
        "elb ConfigureHealthCheck": 1,
        "elb RegisterInstancesWithLoadBalancer": 1,
    }
    lb = described(account)
    assert lb["Scheme"] == "internet-facing"
    assert {*lb["Subnets"]} == {*account.public_subnets}
    assert {each["InstanceId"] for each in lb["Instances"]} == {each.instance_id for each in members.nodes}
    assert lb["HealthCheck"]["Target"] == "TCP:30080"
    assert len(lb["SecurityGroups"]) == 2
    assert owner_of(classic()).tags.items() <= tags(account).items()
    assert tags(account)[CLUSTER_TAG] == "owned"


def test_what_aws_does_not_show_at_once_is_looked_for_again_and_not_made_again(
    account: AwsAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = nodes_of(account)
    process = Process(account)
    real, unseen = process.api.call, [2]

    def call(service: str, operation: str, /, **params: Any) -> dict[str, Any]:
        answer = real(service, operation, **params)
        if operation == "DescribeLoadBalancers" and unseen[0] and "LoadBalancerNames" in params:
            unseen[0] -= 1
            answer["LoadBalancerDescriptions"] = []
        return answer

    monkeypatch.setattr(process.api, "call", call)
    process.converge(classic(), members)

    assert unseen == [0]
    assert process.calls.writes["elb CreateLoadBalancer"] == 1


def test_a_second_service_needs_no_shared_group_of_its_own(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = made(account, classic(), members)
    other = classic()
    other["metadata"] |= {"name": "api", "uid": "uid-2"}

    assert writes(process, other, members) == {
        **GROUP,
        "elb CreateLoadBalancer": 1,
        "elb ConfigureHealthCheck": 1,
        "elb RegisterInstancesWithLoadBalancer": 1,
    }


def test_the_status_is_the_name_that_dns_has(account: AwsAccount) -> None:
    process = made(account, classic(), nodes_of(account))

    (observed,) = process.observed(classic())

    assert observed.state is LoadBalancerState.READY
    assert [each.to_json() for each in observed.ingress] == [{"hostname": described(account)["DNSName"]}]


def test_an_internal_one_is_in_the_private_subnets(account: AwsAccount) -> None:
    made(account, classic(named(internal=True)), nodes_of(account))

    assert described(account)["Scheme"] == "internal"
    assert {*described(account)["Subnets"]} == {*account.private_subnets}


def test_attributes_are_set_only_where_they_are_not_awss_defaults(account: AwsAccount) -> None:
    service = classic(
        named(
            connection_idle_timeout=120,
            connection_draining_enabled=True,
            connection_draining_timeout=30,
            cross_zone_load_balancing_enabled=True,
            access_log_enabled=True,
            access_log_s3_bucket_name="logs",
            access_log_s3_bucket_prefix="web",
            access_log_emit_interval=5,
        )
    )
    members = nodes_of(account)

    assert writes(Process(account), service, members)["elb ModifyLoadBalancerAttributes"] == 1

    found = attributes(account)
    assert found["ConnectionSettings"] == {"IdleTimeout": 120}
    assert found["ConnectionDraining"] == {"Enabled": True, "Timeout": 30}
    assert found["CrossZoneLoadBalancing"] == {"Enabled": True}
    assert found["AccessLog"] == {"Enabled": True, "S3BucketName": "logs", "S3BucketPrefix": "web", "EmitInterval": 5}


def test_proxy_protocol_is_a_policy_of_the_instances_ports(account: AwsAccount) -> None:
    service = classic(named(proxy_protocol="*"), port(80), port(443))
    made(account, service, nodes_of(account))

    backends_ = {each["InstancePort"]: each["PolicyNames"] for each in described(account)["BackendServerDescriptions"]}
    assert backends_ == {30080: ["k8s-proxyprotocol-enabled"], 30443: ["k8s-proxyprotocol-enabled"]}


def test_tls_has_its_certificate_and_its_cipher_suite(account: AwsAccount) -> None:
    arn = certificate(account)
    policy = "ELBSecurityPolicy-TLS-1-2-2017-01"
    service = classic(
        named(ssl_cert=arn, ssl_ports="443", backend_protocol="ssl", ssl_negotiation_policy=policy), port(443)
    )
    made(account, service, nodes_of(account))

    (listener,) = described(account)["ListenerDescriptions"]
    assert (listener["Listener"]["Protocol"], listener["Listener"]["SSLCertificateId"]) == ("SSL", arn)
    assert listener["PolicyNames"] == [f"k8s-SSLNegotiationPolicy-{policy}"]


def test_behind_tls_instances_may_be_spoken_to_in_the_clear(account: AwsAccount) -> None:
    members = nodes_of(account)
    service = classic(named(ssl_cert=certificate(account), backend_protocol="http"), port(443))
    process = made(account, service, members)

    listener = described(account)["ListenerDescriptions"][0]["Listener"]
    assert (listener["Protocol"], listener["InstanceProtocol"]) == ("HTTPS", "HTTP")
    assert process.operations(service, members) == []


def test_a_listener_that_comes_later_has_proxy_protocol_too(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = made(account, classic(named(proxy_protocol="*")), members)

    process.converge(classic(named(proxy_protocol="*"), port(80), port(81)), members)

    proxied = {each["InstancePort"] for each in described(account)["BackendServerDescriptions"]}
    assert proxied == {30080, 30081}


def test_the_same_creation_again_makes_no_second_one(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = made(account, classic(), members)
    model = process.load_balancers.build(classic(), members).model

    again = Process(account).load_balancers.create(CreateLoadBalancer(model, owner_of(classic()).client_token))

    assert again.id == described(account)["LoadBalancerName"]
    assert again.model == process.observed(classic())[0].model


def test_a_foreign_load_balancer_of_the_same_name_is_refused_and_left_alone(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = Process(account)
    model = process.load_balancers.build(classic(), members).model
    account.elb.create_load_balancer(
        LoadBalancerName=load_balancer_name(model, owner_of(classic()).client_token),
        Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 22, "InstanceProtocol": "TCP", "InstancePort": 22}],
        Subnets=account.public_subnets[:1],
    )
    before = described(account)

    with pytest.raises(InvalidConfiguration, match="exists, but without the tags of Service shop/web"):
        process.visit(classic(), members)

    assert described(account) == before


# -------------------------------------------------------------------------------------------------------------- reads


def test_a_restart_with_nothing_changed_writes_nothing(account: AwsAccount) -> None:
    members = nodes_of(account)
    made(account, classic(), members)
    process = Process(account)

    assert process.operations(classic(), members) == []
    assert process.calls.writes == {}


def test_attributes_are_asked_for_once(account: AwsAccount) -> None:
    process = made(account, classic(), nodes_of(account))

    process.observed(classic())
    process.observed(classic())

    assert process.calls.of("elb DescribeLoadBalancerAttributes") == 0


def test_attributes_are_not_asked_for_after_a_restart_that_remembers(account: AwsAccount) -> None:
    members = nodes_of(account)
    service = classic(named(connection_idle_timeout=120))
    first = made(account, service, members)
    second = Process(account)

    second.load_balancers.restore(first.load_balancers.dump(10_000))

    assert second.operations(service, members) == []
    assert second.operations(service, members) == []
    assert second.calls.of("elb DescribeLoadBalancerAttributes") == 0


def test_where_somebody_else_changed_it_attributes_are_asked_for_again(account: AwsAccount) -> None:
    process = made(account, classic(), nodes_of(account))
    name = described(account)["LoadBalancerName"]
    account.elb.delete_load_balancer_listeners(LoadBalancerName=name, LoadBalancerPorts=[80])

    process.observed(classic())
    process.observed(classic())

    assert process.calls.of("elb DescribeLoadBalancerAttributes") == 1


def test_attributes_that_somebody_else_changed_are_found_after_a_restart_and_set_back(account: AwsAccount) -> None:
    members = nodes_of(account)
    made(account, classic(), members)
    account.elb.modify_load_balancer_attributes(
        LoadBalancerName=described(account)["LoadBalancerName"],
        LoadBalancerAttributes={"ConnectionSettings": {"IdleTimeout": 7}},
    )

    assert writes(Process(account), classic(), members) == {"elb ModifyLoadBalancerAttributes": 1}
    assert attributes(account)["ConnectionSettings"] == {"IdleTimeout": 60}


def test_many_load_balancers_are_read_in_few_calls(account: AwsAccount) -> None:
    for number in range(21):
        account.elb.create_load_balancer(
            LoadBalancerName=f"k8s-shop-web-{number}",
            Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 30080}],
            Subnets=account.public_subnets[:1],
            Tags=[{"Key": key, "Value": value} for key, value in owner_of(classic()).tags.items()],
        )
    process = Process(account)
    process.load_balancers.read(None)
    process.calls.clear()

    assert len(process.load_balancers.read(None)) == 21

    counts = process.calls.counts
    assert {each: count for each, count in counts.items() if each.startswith("elb ")} == {
        "elb DescribeLoadBalancers": 1,
        "elb DescribeTags": 2,
    }


def test_load_balancers_of_others_are_not_even_asked_for_their_tags(account: AwsAccount) -> None:
    account.elb.create_load_balancer(
        LoadBalancerName="somebodys",
        Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 22, "InstanceProtocol": "TCP", "InstancePort": 22}],
        Subnets=account.public_subnets[:1],
    )
    process = Process(account)

    assert process.load_balancers.read(None) == []
    assert process.calls.of("elb DescribeTags") == 0


def test_health_is_that_of_each_instance(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = made(account, classic(), members)
    stopped, running = (each.instance_id for each in members.nodes)
    account.ec2.stop_instances(InstanceIds=[stopped])

    health = process.load_balancers.health(described(account)["LoadBalancerName"])

    assert health == {(POOL, stopped, 0): False, (POOL, running, 0): True}


# ------------------------------------------------------------------------------------------------------------ changes


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"connection_idle_timeout": 120}, {"elb ModifyLoadBalancerAttributes": 1}),
        ({"connection_draining_enabled": True}, {"elb ModifyLoadBalancerAttributes": 1}),
        ({"cross_zone_load_balancing_enabled": True}, {"elb ModifyLoadBalancerAttributes": 1}),
        ({"healthcheck_interval": 20}, {"elb ConfigureHealthCheck": 1}),
        ({"additional_resource_tags": "team=web"}, {"elb AddTags": 1, "ec2 CreateTags": 1}),
        (
            {"load_balancer_source_ranges": "10.0.0.0/8"},
            {"ec2 AuthorizeSecurityGroupIngress": 1, "ec2 RevokeSecurityGroupIngress": 1},
        ),
        (
            {"proxy_protocol": "*"},
            {"elb CreateLoadBalancerPolicy": 1, "elb SetLoadBalancerPoliciesForBackendServer": 1},
        ),
    ],
)
def test_a_changed_annotation_costs_only_what_it_changes(
    account: AwsAccount, change: dict[str, Any], expected: dict[str, int]
) -> None:
    members = nodes_of(account)
    process = made(account, classic(), members)

    assert writes(process, classic(named(**change)), members) == expected


def test_an_annotation_that_goes_brings_the_default_back(account: AwsAccount) -> None:
    members = nodes_of(account)
    service = classic(named(connection_idle_timeout=120, connection_draining_enabled=True, proxy_protocol="*"))
    process = made(account, service, members)

    process.converge(classic(), members)

    assert attributes(account)["ConnectionSettings"] == {"IdleTimeout": 60}
    assert attributes(account)["ConnectionDraining"]["Enabled"] is False
    assert described(account)["BackendServerDescriptions"] == []


def test_a_new_port_and_one_that_goes(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = made(account, classic({}, port(80), port(81)), members)

    assert writes(process, classic({}, port(80), port(82)), members) == {
        "ec2 AuthorizeSecurityGroupIngress": 1,
        "ec2 RevokeSecurityGroupIngress": 1,
        "elb CreateLoadBalancerListeners": 1,
        "elb DeleteLoadBalancerListeners": 1,
    }
    assert {each["Listener"]["LoadBalancerPort"] for each in described(account)["ListenerDescriptions"]} == {80, 82}


def test_another_node_port_makes_the_listener_anew(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = made(account, classic({}, port(80), port(81)), members)

    assert writes(process, classic({}, port(80), port(81, nodePort=31081)), members) == {
        "elb CreateLoadBalancerListeners": 1,
        "elb DeleteLoadBalancerListeners": 1,
    }
    ports = {each["Listener"]["InstancePort"] for each in described(account)["ListenerDescriptions"]}
    assert ports == {30080, 31081}


def test_proxy_protocol_does_not_stay_with_a_port_that_nobody_uses(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = made(account, classic(named(proxy_protocol="*"), port(80), port(81)), members)

    process.converge(classic(named(proxy_protocol="*"), port(80)), members)

    assert [each["InstancePort"] for each in described(account)["BackendServerDescriptions"]] == [30080]


def test_another_certificate_is_one_call(account: AwsAccount) -> None:
    members = nodes_of(account)
    old, new = certificate(account), certificate(account, "www.example.com")
    process = made(account, classic(named(ssl_cert=old, backend_protocol="ssl"), port(443)), members)

    changed = classic(named(ssl_cert=new, backend_protocol="ssl"), port(443))

    assert writes(process, changed, members) == {"elb SetLoadBalancerListenerSSLCertificate": 1}


def test_a_certificate_in_another_case_is_the_same_one(account: AwsAccount) -> None:
    members = nodes_of(account)
    arn = certificate(account)
    process = made(account, classic(named(ssl_cert=arn, backend_protocol="ssl"), port(443)), members)

    shouted = classic(named(ssl_cert=arn.upper(), backend_protocol="ssl"), port(443))

    assert writes(process, shouted, members) == {}


def test_another_cipher_suite_is_a_policy_and_its_use(account: AwsAccount) -> None:
    members = nodes_of(account)
    tls: dict[str, Any] = {"ssl_cert": certificate(account), "backend_protocol": "ssl"}
    process = made(account, classic(named(**tls), port(443)), members)

    changed = classic(named(**tls, ssl_negotiation_policy="ELBSecurityPolicy-TLS-1-2-2017-01"), port(443))

    assert writes(process, changed, members) == {
        "elb CreateLoadBalancerPolicy": 1,
        "elb SetLoadBalancerPoliciesOfListener": 1,
    }


def test_awss_own_cipher_suite_comes_back_with_a_new_listener(account: AwsAccount) -> None:
    members = nodes_of(account)
    tls: dict[str, Any] = {"ssl_cert": certificate(account), "backend_protocol": "ssl"}
    policy = "ELBSecurityPolicy-TLS-1-2-2017-01"
    process = made(account, classic(named(**tls, ssl_negotiation_policy=policy), port(443)), members)

    assert writes(process, classic(named(**tls), port(443)), members) == {
        "elb CreateLoadBalancerListeners": 1,
        "elb DeleteLoadBalancerListeners": 1,
    }


def test_subnets_in_new_zones_are_attached_before_others_are_detached(account: AwsAccount) -> None:
    members = nodes_of(account)
    first, second, third = account.public_subnets
    process = made(account, classic(named(subnets=f"{first},{second}")), members)

    process.visit(classic(named(subnets=f"{second},{third}")), members)

    assert [each for each in process.calls.made if "Subnets" in each and "Describe" not in each] == [
        "elb AttachLoadBalancerToSubnets",
        "elb DetachLoadBalancerFromSubnets",
    ]
    assert {*described(account)["Subnets"]} == {second, third}


def test_groups_of_people_take_the_place_of_ours_which_is_deleted(account: AwsAccount) -> None:
    members = nodes_of(account)
    theirs = account.ec2.create_security_group(GroupName="theirs", Description="theirs", VpcId=account.vpc_id)[
        "GroupId"
    ]
    process = made(account, classic(), members)

    assert writes(process, classic(named(security_groups=theirs)), members) == {
        "elb ApplySecurityGroupsToLoadBalancer": 1,
        "ec2 DeleteSecurityGroup": 1,
    }
    assert theirs in described(account)["SecurityGroups"]
    assert account.ec2.describe_security_groups(GroupIds=[theirs])["SecurityGroups"][0]["IpPermissions"] == []


def test_a_group_of_the_cloud_config_takes_the_place_of_ours_and_is_not_touched(account: AwsAccount) -> None:
    members = nodes_of(account)
    theirs = account.ec2.create_security_group(GroupName="theirs", Description="theirs", VpcId=account.vpc_id)[
        "GroupId"
    ]
    process = Process(account, elb_security_group=theirs)

    process.converge(classic(), members)

    assert theirs in described(account)["SecurityGroups"]
    assert process.calls.of("ec2 CreateSecurityGroup") == 1  # The shared one.
    assert account.ec2.describe_security_groups(GroupIds=[theirs])["SecurityGroups"][0]["IpPermissions"] == []


def test_where_others_open_the_nodes_nothing_of_theirs_is_touched(account: AwsAccount) -> None:
    process = Process(account, disable_security_group_ingress=True)

    process.converge(classic(), nodes_of(account))

    assert len(described(account)["SecurityGroups"]) == 1
    nodes = account.ec2.describe_security_groups(GroupIds=[account.node_group_id])["SecurityGroups"][0]
    assert nodes["IpPermissions"] == []


# ------------------------------------------------------------------------------------------------------------ members


def test_a_node_that_comes_is_one_call_however_many_ports(account: AwsAccount) -> None:
    one = nodes_of(account, 1)
    two = Backends((*one.nodes, *nodes_of(account, 1).nodes))
    service = classic({}, *(port(number) for number in range(80, 90)))
    process = made(account, service, one)

    assert writes(process, service, two) == {"elb RegisterInstancesWithLoadBalancer": 1}
    assert writes_of_removal(process, service, one) == {"elb DeregisterInstancesFromLoadBalancer": 1}


def writes_of_removal(process: Process, service: Object, members: Backends) -> dict[str, int]:
    process.calls.clear()
    return writes(process, service, members)


def test_an_instance_that_aws_does_not_take_keeps_no_other_out_and_is_tried_again(account: AwsAccount) -> None:
    members = nodes_of(account, 4)
    process = made(account, classic(), Backends())
    refused = members.nodes[1].instance_id
    process.api.refused_instances = {refused}

    process.visit(classic(), members)

    others = {each.instance_id for each in members.nodes} - {refused}
    assert {each["InstanceId"] for each in described(account)["Instances"]} == others
    (again,) = process.operations(classic(), members)
    assert again == AddMembers(described(account)["LoadBalancerName"], POOL, (Member(refused, 0, refused),))


def test_an_instance_that_aws_does_not_take_stops_no_creation(account: AwsAccount) -> None:
    members = nodes_of(account)
    taken, refused = (each.instance_id for each in members.nodes)
    process = Process(account)
    process.api.refused_instances = {refused}

    process.visit(classic(), members)

    assert [each["InstanceId"] for each in described(account)["Instances"]] == [taken]


def test_an_instance_that_is_gone_already_keeps_no_other_in(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = made(account, classic(), members)
    name = described(account)["LoadBalancerName"]
    ids = [each.instance_id for each in members.nodes]
    account.elb.deregister_instances_from_load_balancer(LoadBalancerName=name, Instances=[{"InstanceId": ids[0]}])
    process.api.refused_instances = {ids[0]}

    process.load_balancers.remove_members(RemoveMembers(name, POOL, tuple(Member(each, 0, each) for each in ids)))

    assert described(account)["Instances"] == []


# ----------------------------------------------------------------------------------------------------------- deletion


def test_with_the_last_one_everything_goes(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = made(account, classic(), members)

    process.converge(classic(), members, wanted=False)

    assert account.elb.describe_load_balancers()["LoadBalancerDescriptions"] == []
    groups = account.ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [account.vpc_id]}])
    assert {each["GroupName"] for each in groups["SecurityGroups"]} == {"default", "nodes"}
    assert all(each["IpPermissions"] == [] for each in groups["SecurityGroups"] if each["GroupName"] == "nodes")


def test_a_group_that_is_still_in_use_leaves_the_rest_to_be_seen_and_deleted_later(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = made(account, classic(), members)
    process.api.holds = True

    process.visit(classic(), members, wanted=False)
    (left,) = process.observed(classic())
    assert left.state is LoadBalancerState.PARTIAL
    assert not left.settled

    process.api.holds = False
    process.converge(classic(), members, wanted=False)
    assert process.observed(classic()) == []


def test_what_another_process_left_of_a_deletion_is_found(account: AwsAccount) -> None:
    members = nodes_of(account)
    first = made(account, classic(), members)
    first.api.holds = True
    first.visit(classic(), members, wanted=False)

    second = Process(account)
    second.converge(classic(), members, wanted=False)

    groups = account.ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [account.vpc_id]}])
    assert {each["GroupName"] for each in groups["SecurityGroups"]} == {"default", "nodes"}


def test_one_whose_groups_are_all_of_people_outlasts_the_shared_group(account: AwsAccount) -> None:
    """Nothing else carries the Service's tags: were it gone first, nobody would know that something is left."""
    members = nodes_of(account)
    theirs = account.ec2.create_security_group(GroupName="theirs", Description="theirs", VpcId=account.vpc_id)
    service = classic(named(security_groups=theirs["GroupId"]))
    process = made(account, service, members)
    process.api.holds = True

    process.visit(service, members, wanted=False)
    assert described(account)["SecurityGroups"] == [theirs["GroupId"]]

    process.api.holds = False
    process.converge(service, members, wanted=False)
    assert account.elb.describe_load_balancers()["LoadBalancerDescriptions"] == []
    groups = account.ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [account.vpc_id]}])
    assert {each["GroupName"] for each in groups["SecurityGroups"]} == {"default", "nodes", "theirs"}


def test_one_that_lost_its_tags_is_not_deleted(account: AwsAccount) -> None:
    members = nodes_of(account)
    process = made(account, classic(), members)
    operations = process.operations(classic(), members, wanted=False)
    name = described(account)["LoadBalancerName"]
    account.elb.remove_tags(LoadBalancerNames=[name], Tags=[{"Key": "kubernetes.io/cluster"}])

    with pytest.raises(InvalidConfiguration, match="does not carry this cluster's tags"):
        process.load_balancers.delete(operations[0])  # type: ignore[arg-type]

    assert described(account)["LoadBalancerName"] == name

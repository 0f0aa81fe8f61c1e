"""Attributes of listeners, single target groups and checks in AWS: by which calls they are written, read and kept."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import PREFIX
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.in_the_account import listeners, load_balancers, target_groups
from tests.cloud_controller.clouds.aws.services import named, nlb
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, changed, port, served

IDLE = "tcp.idle_timeout.seconds"
IDLE_TIMEOUT = f"{PREFIX}connection-idle-timeout"


def idle_timeouts(account: AwsAccount) -> dict[int, str]:
    (lb,) = load_balancers(account)
    return {number: _attribute(account, each["ListenerArn"]) for number, each in listeners(account, lb).items()}


def _attribute(account: AwsAccount, arn: str) -> str:
    found = account.elbv2.describe_listener_attributes(ListenerArn=arn)["Attributes"]
    return {each["Key"]: each["Value"] for each in found}.get(IDLE, "350")


def give_idle_timeout(account: AwsAccount, seconds: str) -> None:
    """Somebody else gives it to the listener of port 80."""
    (lb,) = load_balancers(account)
    arn = listeners(account, lb)[80]["ListenerArn"]
    account.elbv2.modify_listener_attributes(ListenerArn=arn, Attributes=[{"Key": IDLE, "Value": seconds}])


def of_listeners(running: Running) -> dict[str, int]:
    return {name: count for name, count in running.calls.counts.items() if "ListenerAttributes" in name}


def test_an_idle_timeout_is_written_once_for_each_tcp_listener(account: AwsAccount, cluster: Cluster) -> None:
    cluster.put(nlb({IDLE_TIMEOUT: "60"}, port(80), port(53, "UDP")))

    running = Running(account, cluster).settle()

    assert idle_timeouts(account)[80] == "60"
    assert of_listeners(running) == {"elbv2 ModifyListenerAttributes": 1}


def test_without_the_annotation_aws_is_never_asked(account: AwsAccount, cluster: Cluster) -> None:
    cluster.put(nlb({}, port(80), port(443)))

    first, second = Running(account, cluster).settle(), Running(account, cluster).settle()

    assert of_listeners(first) == of_listeners(second) == {}
    assert second.calls.writes == {}


def test_another_process_reads_it_once_and_finds_it_as_it_should_be(account: AwsAccount, cluster: Cluster) -> None:
    served(account, cluster, nlb({IDLE_TIMEOUT: "60"}, port(80)))

    second = Running(account, cluster).settle()
    second.resync()
    second.settle()

    assert of_listeners(second) == {"elbv2 DescribeListenerAttributes": 1}
    assert second.calls.writes == {}


def test_one_that_comes_later_is_a_mark_and_one_write_a_listener(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(80), port(443)))

    changed(cluster, named(connection_idle_timeout=600))
    running.settle()

    assert idle_timeouts(account) == {80: "600", 443: "600"}
    assert dict(running.calls.writes) == {"elbv2 AddTags": 1, "elbv2 ModifyListenerAttributes": 2}


def test_one_that_changes_is_one_write_a_listener(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({IDLE_TIMEOUT: "60"}, port(80), port(443)))

    changed(cluster, named(listener_attributes={"TCP-443": (f"{IDLE}=6000",)}))
    running.settle()

    assert idle_timeouts(account) == {80: "60", 443: "6000"}
    assert dict(running.calls.writes) == {"elbv2 ModifyListenerAttributes": 1}


def test_one_that_is_taken_off_goes_back_to_what_aws_gives(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({IDLE_TIMEOUT: "60"}, port(80), port(443)))
    del cluster.service(WEB)["metadata"]["annotations"][IDLE_TIMEOUT]

    running.settle()

    assert idle_timeouts(account) == {80: "350", 443: "350"}
    second = Running(account, cluster).settle()
    assert second.calls.writes == {}


def test_what_somebody_changed_is_put_right_once_it_is_read_again(account: AwsAccount, cluster: Cluster) -> None:
    served(account, cluster, nlb({IDLE_TIMEOUT: "60"}, port(80)))
    give_idle_timeout(account, "120")

    Running(account, cluster).settle()

    assert idle_timeouts(account) == {80: "60"}


def test_one_that_was_never_given_an_idle_timeout_keeps_what_somebody_else_gave_it(
    account: AwsAccount, cluster: Cluster
) -> None:
    served(account, cluster, nlb({}, port(80)))
    give_idle_timeout(account, "120")

    Running(account, cluster).settle()

    assert idle_timeouts(account) == {80: "120"}


def test_one_that_was_taken_off_is_not_read_any_more_and_anybodys(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({IDLE_TIMEOUT: "60"}, port(80), port(443)))
    del cluster.service(WEB)["metadata"]["annotations"][IDLE_TIMEOUT]
    running.settle()
    assert dict(running.calls.writes) == {"elbv2 ModifyListenerAttributes": 2, "elbv2 RemoveTags": 1}
    give_idle_timeout(account, "120")

    second = Running(account, cluster).settle()

    assert idle_timeouts(account) == {80: "120", 443: "350"}
    assert of_listeners(second) == {}


def test_aws_default_that_an_annotation_gives_is_kept_all_the_same(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({IDLE_TIMEOUT: "60"}, port(80)))
    changed(cluster, named(connection_idle_timeout=350))
    running.settle()
    give_idle_timeout(account, "120")

    Running(account, cluster).settle()

    assert idle_timeouts(account) == {80: "350"}


def test_the_attributes_of_one_port_are_those_of_its_target_group_alone(account: AwsAccount, cluster: Cluster) -> None:
    served(account, cluster, nlb({}, port(80), port(443)))
    changed(cluster, named(target_group_attributes_of_port={"443": ("proxy_protocol_v2.enabled=true",)}))

    running = Running(account, cluster).settle()

    assert dict(running.calls.writes) == {"elbv2 ModifyTargetGroupAttributes": 1}


def test_the_codes_that_pass_a_check_are_changed_in_place(account: AwsAccount, cluster: Cluster) -> None:
    annotations = named(healthcheck_protocol="HTTP")
    running = served(account, cluster, nlb(annotations, port(80)))
    assert target_groups(account)[0]["Matcher"] == {"HttpCode": "200-399"}
    running.calls.clear()

    changed(cluster, named(healthcheck_success_codes="200,204"))
    running.settle()

    assert target_groups(account)[0]["Matcher"] == {"HttpCode": "200,204"}
    assert dict(running.calls.writes) == {"elbv2 ModifyTargetGroup": 1}


def test_what_a_service_of_the_other_controller_asks_for_in_vain_is_a_warning_with_its_name(
    account: AwsAccount, cluster: Cluster
) -> None:
    served(account, cluster, nlb({f"{PREFIX}quic-enabled-ports": "443"}, port(80), port(443)))

    ((_, message),) = [event for event in cluster.events if event[0] == "NotOffered"]
    assert f"annotation {PREFIX}quic-enabled-ports has no effect" in message


def test_one_that_restricts_access_is_refused_and_nothing_is_made(account: AwsAccount, cluster: Cluster) -> None:
    cluster.put(nlb({f"{PREFIX}manage-backend-security-group-rules": "no"}, port(80), port(443)))

    with pytest.raises(InvalidConfiguration, match="'no': all load balancers of the cluster share one rule"):
        Running(account, cluster).settle()

    assert load_balancers(account) == []
    assert "SyncLoadBalancerFailed" in cluster.reasons

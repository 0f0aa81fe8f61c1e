"""A controller that dies after any changing call, or misses any answer: what it began is finished, and nothing leaks.

Every call with CRASH_POINTS=all (`make crash-test`), else every eighth, beginning with another one each scenario.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from cloud_controller.cloud import Unavailable
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.cloud import Aws
from cloud_controller.load_balancers.model import SERVICE_UID_TAG
from tests.cloud_controller.clouds.aws import as_aws
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.nlb_world import (
    WEB,
    Running,
    assert_nothing_left,
    groups_made,
    listeners,
    load_balancers,
    nlb,
    port,
    put_nodes,
    target_groups,
    targets,
)
from tests.cloud_controller.clouds.mycloud.service_world import Cluster

MOST = 60
"""More changing calls than any of these need: a loop that gets there has never ended by itself."""

STEP = 1 if os.environ.get("CRASH_POINTS") == "all" else 8


class Died(BaseException):
    """The process is gone; nothing of it may catch this."""


class Faults:
    """Between a controller and AWS: after `left` changing calls, that one's answer never comes (`dies`: nor any)."""

    def __init__(self, left: int, *, dies: bool) -> None:
        self.left = left
        self.dies = dies
        self.happened = False
        self._lock = threading.Lock()

    def __call__(self, cloud: Aws) -> None:
        api = cloud._api
        real = api.call

        def call(service: str, operation: str, /, **params: Any) -> dict[str, Any]:
            if self.happened and self.dies:
                raise Died
            answer = real(service, operation, **params)
            if not operation.startswith("Describe"):
                with self._lock:  # Several are under way at once.
                    self.left -= 1
                    last = self.left == 0
                if last:
                    self.happened = True
                    raise Died if self.dies else Unavailable(f"no answer from {operation}")
            return answer

        api.call = call  # type: ignore[method-assign]


Change = Callable[[Cluster], None]


def asked(cluster: Cluster) -> None:
    cluster.put(nlb(annotations=CATALOGUE.annotations({"connection_idle_timeout": 60})))


def changed(cluster: Cluster) -> None:
    """Nearly all of it changes at once."""
    service = cluster.service()
    service["metadata"]["annotations"] |= {
        CATALOGUE.by_argument["healthcheck_healthy_threshold"].name: "5",
        CATALOGUE.by_argument["target_group_attributes"].name: "deregistration_delay.timeout_seconds=30",
        CATALOGUE.by_argument["cross_zone_load_balancing_enabled"].name: "true",
        CATALOGUE.by_argument["connection_idle_timeout"].name: "600",
        CATALOGUE.by_argument["additional_resource_tags"].name: "team=web",
    }
    service["spec"]["loadBalancerSourceRanges"] = ["10.0.0.0/8"]
    service["spec"]["ports"] = [port(80, 30081), port(443, 30443, "UDP"), port(8080, 30080)]


def replaced(cluster: Cluster) -> None:
    cluster.service()["metadata"]["annotations"][CATALOGUE.by_argument["scheme"].name] = "internal"


def deleted(cluster: Cluster) -> None:
    cluster.delete_service()


def state(account: AwsAccount) -> dict[str, Any]:
    """What there is of load balancing, without what AWS chose."""
    groups = {each["TargetGroupArn"]: each for each in target_groups(account)}
    found = account.ec2.describe_security_groups()["SecurityGroups"]
    return {
        "load balancers": [
            {
                "scheme": lb["Scheme"],
                "groups": len(lb["SecurityGroups"]),
                "listeners": {
                    number: (
                        each["Protocol"],
                        _idle_timeout(account, each) if each["Protocol"] == "TCP" else None,
                        targets(account, groups[each["DefaultActions"][0]["TargetGroupArn"]]),
                    )
                    for number, each in listeners(account, lb).items()
                },
                "attributes": account.elbv2.describe_load_balancer_attributes(LoadBalancerArn=lb["LoadBalancerArn"])[
                    "Attributes"
                ],
                "tags": _tags(account, lb["LoadBalancerArn"]),
            }
            for lb in load_balancers(account)
        ],
        "target groups": sorted(
            (
                each["Protocol"],
                each["HealthyThresholdCount"],
                _tags(account, each["TargetGroupArn"]).get("team"),
                str(_delay(account, each)),
            )
            for each in groups.values()
        ),
        "security groups": len(groups_made(account)),
        "rules": sorted(
            str(sorted(cidr["CidrIp"] for cidr in rule["IpRanges"]))
            for group in found
            if SERVICE_UID_TAG in {tag["Key"] for tag in group.get("Tags", ())}
            for rule in group["IpPermissions"]
        ),
    }


def _delay(account: AwsAccount, group: Any) -> str:
    arn = group["TargetGroupArn"]
    attributes = account.elbv2.describe_target_group_attributes(TargetGroupArn=arn)["Attributes"]
    return next(each["Value"] for each in attributes if each["Key"] == "deregistration_delay.timeout_seconds")


def _idle_timeout(account: AwsAccount, listener: Any) -> str | None:
    found = account.elbv2.describe_listener_attributes(ListenerArn=listener["ListenerArn"])["Attributes"]
    return next((each["Value"] for each in found if each["Key"] == "tcp.idle_timeout.seconds"), None)


def _tags(account: AwsAccount, arn: str) -> dict[str, str]:
    (found,) = account.elbv2.describe_tags(ResourceArns=[arn])["TagDescriptions"]
    return {tag["Key"]: tag["Value"] for tag in found["Tags"]}


@pytest.fixture(autouse=True)
def _as_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    as_aws.mend(monkeypatch)


def undisturbed(account: AwsAccount, cluster: Cluster, *changes: Change) -> None:
    running = Running(account, cluster)
    for change in changes:
        change(cluster)
        running.settle(rounds=6)


class Behind:
    """AWS, whose lists do not show yet what was made, though it is there by its name."""

    def __init__(self) -> None:
        self.behind = True

    def __call__(self, cloud: Aws) -> None:
        api = cloud._api
        real = api.call
        lists = {"DescribeLoadBalancers": "LoadBalancers", "DescribeTargetGroups": "TargetGroups"}

        def call(service: str, operation: str, /, **params: Any) -> dict[str, Any]:
            answer = real(service, operation, **params)
            if self.behind and service == "elbv2" and operation in lists and "Names" not in params:
                answer[lists[operation]] = []
            return answer

        api.call = call  # type: ignore[method-assign]


def test_what_a_list_does_not_show_yet_is_not_made_again(account: AwsAccount) -> None:
    cluster = Cluster()
    put_nodes(cluster, account.launch(1))
    undisturbed(account, cluster, asked)
    wanted = state(account)
    lists = Behind()
    running = Running(account, cluster, wrap=lists)

    with pytest.raises(Unavailable, match="already exists"):
        running.settle()
    assert len(load_balancers(account)) == 1

    lists.behind = False
    running.settle()
    assert state(account) == wanted


def test_nor_what_this_process_has_just_made(account: AwsAccount) -> None:
    cluster = Cluster()
    put_nodes(cluster, account.launch(1))
    cluster.put(nlb())
    cluster.put(nlb("second"))
    lists = Behind()
    running = Running(account, cluster, wrap=lists)

    running.settle()
    running.resync()
    running.settle()
    lists.behind = False
    running.resync()
    running.settle()

    made = ("CreateLoadBalancer", "CreateTargetGroup", "CreateListener", "RegisterTargets")
    assert [running.calls.of(f"elbv2 {operation}") for operation in made] == [2, 4, 4, 4]
    assert running.calls.of("elbv2 DescribeListeners") == 0, "nothing had to be read of them"
    assert cluster.ingress


@pytest.mark.parametrize("dies", [True, False], ids=["it dies", "an answer is lost"])
@pytest.mark.parametrize(
    ("before", "change", "first"),
    [((), asked, 1), ((asked,), changed, 2), ((asked,), replaced, 3), ((asked,), deleted, 1)],
    ids=["creation", "change", "replacement", "deletion"],
)
def test_whatever_call_it_is_it_comes_to_the_same(
    account: AwsAccount, before: tuple[Change, ...], change: Change, first: int, dies: bool
) -> None:
    cluster = Cluster()
    put_nodes(cluster, account.launch(1))
    undisturbed(account, cluster, *before, change)
    wanted = state(account)

    for number in range(1 if STEP == 1 else first, MOST, STEP):
        if WEB in cluster.objects["services"]:
            undisturbed(account, cluster, deleted)
        assert_nothing_left(account)
        undisturbed(account, cluster, *before)

        change(cluster)
        faults = Faults(number, dies=dies)
        try:
            running = Running(account, cluster, wrap=faults)
            running.settle(rounds=6)
        except Died:
            running = Running(account, cluster)
        except Unavailable:
            pass  # As after its backoff, it comes back to the Service.
        if not faults.happened:
            return
        running.settle(rounds=6)

        assert state(account) == wanted, f"after call {number}"
    pytest.fail(f"{MOST} calls are not enough")

"""Load balancers that Services name by ID, with the service controller on the stand-in."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.load_balancers.sharing import SHARED_WITH_TAG
from local.alicloud.nlb_jobs import BALANCER, GROUP, LISTENER
from tests.cloud_controller.clouds.alicloud.account import VPC
from tests.cloud_controller.clouds.alicloud.nlb.balancing import NlbAccount
from tests.cloud_controller.clouds.alicloud.nlb.services import ZONE_H, ZONE_K
from tests.cloud_controller.cluster import WEB
from tests.cloud_controller.load_balancing import changed, port, served, service

NLB: dict[str, Any] = {"loadBalancerClass": "alibabacloud.com/nlb"}


class Shared(NlbAccount):
    """An account with a load balancer of a user, which listens on port 80 for one server of the user's."""

    def __init__(self) -> None:
        super().__init__()
        client = self.cloud()._client
        zones = [{"ZoneId": ZONE_H, "VSwitchId": "vsw-h"}, {"ZoneId": ZONE_K, "VSwitchId": "vsw-k"}]
        tag = [{"Key": SHARED_WITH_TAG, "Value": "any"}]
        asked = {"LoadBalancerName": "of-a-user", "VpcId": VPC, "AddressType": "Internet", "ZoneMappings": zones}
        self.user = client.call("nlb", "CreateLoadBalancer", {**asked, "Tag": tag})["LoadbalancerId"]
        asked = {"ServerGroupName": "of-a-user", "VpcId": VPC, "Protocol": "TCP"}
        self.group = client.call("nlb", "CreateServerGroup", asked)["ServerGroupId"]
        servers = [{"ServerId": "i-n3", "ServerType": "Ecs", "Port": 9000}]
        client.call("nlb", "AddServersToServerGroup", {"ServerGroupId": self.group, "Servers": servers})
        parts = {"LoadBalancerId": self.user, "ServerGroupId": self.group}
        client.call("nlb", "CreateListener", {**parts, "ListenerPort": 80, "ListenerProtocol": "TCP"})
        self.standin.calls.clear()

    def everything(self) -> list[dict[str, Any]]:
        return [each for kind in (BALANCER, GROUP, LISTENER) for each in self.objects(kind)]


@pytest.fixture
def account() -> Shared:
    return Shared()


def of(**annotations: str) -> dict[str, str]:
    return {f"{PREFIX}{name.replace('_', '-')}": text for name, text in annotations.items()}


def test_a_service_has_its_own_listener_and_group_on_a_users_load_balancer(account: Shared) -> None:
    before = account.everything()
    cluster = account.cluster()

    running = served(account, cluster, service(of(id=account.user), port(8443), **NLB))

    (address,) = cluster.service(WEB)["status"]["loadBalancer"]["ingress"]
    assert address["hostname"].startswith(account.user)
    assert {each["port"] for each in account.objects(LISTENER)} == {80, 8443}
    assert [each for each in account.everything() if each in before] == before
    cluster.delete_service()
    running.settle()
    assert account.everything() == before


def test_a_port_of_the_user_is_refused_unless_it_is_taken_over_and_then_given_back(account: Shared) -> None:
    before = account.everything()
    cluster = account.cluster()
    cluster.put(service(of(id=account.user), port(80), **NLB))
    running = served(account, cluster, service(of(id=account.user, force_override_listeners="true"), port(80), **NLB))

    (listener,) = account.objects(LISTENER)
    assert listener["ServerGroupId"] != account.group
    changed(cluster, of(cps="7"))
    running.settle()
    assert [each["Cps"] for each in account.objects(LISTENER)] == [7]

    cluster.delete_service()
    running.settle()
    assert account.everything() == before


def test_a_users_load_balancer_that_is_not_shared_is_left_alone(account: Shared) -> None:
    account.put(BALANCER, tags={})
    before = account.everything()
    cluster = account.cluster()
    cluster.put(service(of(id=account.user), port(8443), **NLB))

    with pytest.raises(InvalidConfiguration, match="is not shared with"):
        served(account, cluster, service(of(id=account.user), port(8443), **NLB))

    assert account.everything() == before

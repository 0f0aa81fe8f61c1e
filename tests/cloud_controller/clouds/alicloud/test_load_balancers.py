"""Both kinds of load balancers of Alibaba Cloud behind one interface: the class selects the kind."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.clouds.alicloud.annotations import CATALOGUE
from cloud_controller.clouds.alicloud.build import AliCloudBuilder
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.restrictions import SOURCE_RANGES
from local.alicloud.account import REGION
from local.alicloud.clb_balancers import CLB
from local.alicloud.nlb_jobs import BALANCER as NLB
from tests.cloud_controller.clouds.alicloud.account import CONFIG
from tests.cloud_controller.clouds.alicloud.clb.balancing import Balancing
from tests.cloud_controller.load_balancing import Running, service

BUILDER = AliCloudBuilder(CONFIG)
OF_NLB, OF_CLB = "cloud-controller/nlb", "cloud-controller/clb"


@pytest.fixture
def account() -> Balancing:
    return Balancing()


def node(provider_id: str = f"{REGION}.i-1", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n1", "labels": labels or {}}, "spec": {"providerID": provider_id, **spec}}


def zones(account: Balancing) -> dict[str, str]:
    pairs = zip("hk", account.vswitches, strict=True)
    return {f"{PREFIX}zone-maps": ",".join(f"{REGION}-{zone}:{vswitch}" for zone, vswitch in pairs)}


@pytest.mark.parametrize(
    ("of_class", "kind"), [(None, CLB), (OF_CLB, CLB), (OF_NLB, NLB), ("alibabacloud.com/nlb", NLB)]
)
def test_the_class_selects_the_kind(account: Balancing, of_class: str | None, kind: str) -> None:
    running = Running(account, account.cluster())
    given = zones(account) if kind == NLB else {}
    spec: dict[str, Any] = {"loadBalancerClass": of_class} if of_class else {}
    running.cluster.put(service(given, **spec))

    running.settle()

    assert [len(account.objects(each)) for each in (CLB, NLB)] == [kind == CLB, kind == NLB]
    assert running.cluster.ingress
    assert not running.plan().changes


def test_both_kinds_are_read_at_once_and_each_keeps_its_own(account: Balancing) -> None:
    running = Running(account, account.cluster())
    running.cluster.put(service(name="web"))
    running.cluster.put(service(zones(account), name="shop", loadBalancerClass=OF_NLB))
    running.settle()

    found = {lb.model.attributes["type"]: lb for lb in running.cloud.load_balancers.read()}

    assert {*found} == {"clb", "nlb"}
    ids = [lb.id for lb in found.values()]
    assert {lb.id for lb in running.cloud.load_balancers.read((), ids)} == {*ids}
    for lb in found.values():
        assert running.cloud.load_balancers.health(lb.id)
    running.cluster.delete_service("default/shop")
    running.settle()
    assert [len(account.objects(each)) for each in (CLB, NLB)] == [1, 0]


@pytest.mark.parametrize(
    ("annotation", "text", "of_class", "why"),
    [("zone-maps", "a:b", None, "only NLB"), ("spec", "slb.s1.small", OF_NLB, "only CLB")],
)
def test_an_annotation_of_the_other_kind_is_reported(
    annotation: str, text: str, of_class: str | None, why: str
) -> None:
    settings = CATALOGUE.of_class(of_class).parse({PREFIX + annotation: text})

    assert [(each.ignored or "").startswith(why) for each in settings.ignored] == [True]


@pytest.mark.parametrize(
    ("annotation", "text", "of_class"), [("acl-id", "acl-1", OF_NLB), ("security-group-ids", "sg-1", None)]
)
def test_a_restriction_that_the_kind_does_not_have_is_refused(annotation: str, text: str, of_class: str | None) -> None:
    with pytest.raises(InvalidConfiguration, match=f"{annotation}: .*load balancers have it"):
        CATALOGUE.of_class(of_class).parse({PREFIX + annotation: text})


def test_a_node_is_a_backend_by_its_instance() -> None:
    found = BUILDER.backend(node(labels={"pool": "a"}))

    assert found is not None
    assert (found.instance_id, found.address, found.labels) == ("i-1", "i-1", {"pool": "a"})


@pytest.mark.parametrize(
    "given",
    [
        node("ack-hybrid://i-1"),
        node("cn-beijing.i-1"),
        node("aws:///zone/i-1"),
        node(labels={"service.alibabacloud.com/exclude-node": "true"}),
    ],
)
def test_a_node_that_is_elsewhere_or_left_alone_is_no_backend(given: dict[str, Any]) -> None:
    assert BUILDER.backend(given) is None


def test_empty_annotations_count_as_missing() -> None:
    given = service({f"{PREFIX}bandwidth": "", f"{PREFIX}id": " "})

    assert BUILDER.build(given, Backends(), Fact()).reuse is None


@pytest.mark.parametrize("of_class", [None, OF_NLB])
def test_another_clouds_wish_for_an_internal_load_balancer_is_refused_unless_it_is_one(of_class: str | None) -> None:
    other = {"service.beta.kubernetes.io/openstack-internal-load-balancer": "true"}
    known = CATALOGUE.of_class(of_class)

    with pytest.raises(InvalidConfiguration, match="it would be public"):
        known.parse(other)
    assert known.parse({**other, f"{PREFIX}address-type": "intranet"}).text("address_type") == "intranet"


@pytest.mark.parametrize("of_class", [None, OF_NLB])
def test_source_ranges_are_never_passed_over(of_class: str | None) -> None:
    assert not CATALOGUE.of_class(of_class).by_name[SOURCE_RANGES].ignored
    with pytest.raises(InvalidConfiguration, match="every client could connect"):
        CATALOGUE.of_class(of_class).parse({"service.beta.kubernetes.io/openstack-allowed-cidrs": "10.0.0.0/8"})

"""Every setting is stored as the next process reads it: nothing is left to do after creation, change and return."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.clouds.alicloud.clb.annotations import CLB
from cloud_controller.load_balancers.catalogue import Mutability
from local.alicloud.clb_balancers import CLB as BALANCER
from local.alicloud.clb_balancers import GROUP, LISTENER
from tests.cloud_controller.clouds.alicloud.clb.balancing import Balancing
from tests.cloud_controller.clouds.alicloud.clb.services import prefixed
from tests.cloud_controller.clouds.alicloud.clb.test_annotations import BESIDE, NUMBERS, TEXTS, port_of
from tests.cloud_controller.load_balancing import port, served, service

pytestmark = pytest.mark.integration

NOT_OF_THE_STAND_IN = {("scheduler", "wlc")}
CASES = [
    *((entry.name.removeprefix(PREFIX), str(each)) for entry in NUMBERS for each in (entry.minimum, entry.maximum)),
    *((name, text) for name, text, _ in TEXTS if (name, text) not in NOT_OF_THE_STAND_IN),
    ("domain-extensions", "a.example.com:cert-a,b.example.com:cert-b"),
    ("additional-resource-tags", "team=web,stage=test"),
    ("name", "edge"),
    ("hostname", "web.example.com"),
    ("acl-status", "on"),
    ("backend-label", "pool=none"),
]
MORE = {"domain_extensions": BESIDE["http2_enabled"], "acl_status": {"acl-id": "ACL"}}
ONE_WAY = {"instance-charge-type"}
"""What the cloud does not change back."""


@pytest.mark.parametrize(("name", "text"), CASES, ids=lambda value: str(value)[:40])
def test_a_setting_is_made_read_taken_back_and_set_again(account: Balancing, name: str, text: str) -> None:
    entry = CLB.by_name[PREFIX + name]
    beside = BESIDE.get(entry.argument, {}) | MORE.get(entry.argument, {})
    real = {"ACL": account.acls[0], "acl-1": account.acls[1], "vsw-h": account.vswitches[1]}
    given = {key: real.get(value, value) for key, value in {**beside, name: text}.items()}
    without = given if name in beside else {key: value for key, value in given.items() if key != name}
    if name in ("cert-id", "cookie", "acl-status"):
        without = {key: value for key, value in {**given, name: ""}.items() if value} if name == "acl-status" else given
        without = {key: value for key, value in without.items() if key != "acl-id" or name != "acl-status"}
    ports = [port(port_of(beside))]
    running = served(account, account.cluster(), service(prefixed(given), *ports))
    assert not running.plan().changes

    if entry.mutability is Mutability.CREATE_ONLY or name in ONE_WAY:
        return
    for wanted in (without, given):
        running.apply(service(prefixed(wanted), *ports))
    running.cluster.delete_service()
    running.settle()

    assert not [each for kind in (BALANCER, LISTENER, GROUP) for each in account.objects(kind)]

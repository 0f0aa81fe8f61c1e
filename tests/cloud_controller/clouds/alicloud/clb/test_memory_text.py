"""The cache of server groups survives a restart, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cloud_controller.clouds.alicloud.clb.memory_text import from_bytes, to_bytes
from cloud_controller.clouds.alicloud.clb.wire import Group, Server
from cloud_controller.clouds.common.checkpoint import packed
from cloud_controller.load_balancers.backends import Member
from tests.cloud_controller.clouds.alicloud.clb.balancing import Balancing
from tests.cloud_controller.clouds.alicloud.clb.services import prefixed
from tests.cloud_controller.load_balancing import Running, port, served, service

CERTIFICATES = {"lb-1/443": {"a.example.com": ("de-1", "cert-a")}}


def group(number: int, servers: int) -> Group:
    found = (Server(Member(f"i-{each}", 30080, f"i-{each}", 100), f"i-{each}") for each in range(servers))
    return Group(f"rsp-{number}", "lb-1", f"tcp-{number}", {"team": "web"}, tuple(found))


GROUPS = {each.id: each for each in (group(1, 3), group(2, 200), group(3, 0))}


def test_what_is_written_is_read_again_and_always_the_same() -> None:
    written = to_bytes(GROUPS, CERTIFICATES, limit=1 << 20)

    assert from_bytes(written) == (GROUPS, CERTIFICATES)
    assert to_bytes(dict(reversed(GROUPS.items())), CERTIFICATES, limit=1 << 20) == written


def test_the_largest_groups_are_left_out_first() -> None:
    whole = len(to_bytes(GROUPS, {}, limit=1 << 20))

    assert from_bytes(to_bytes(GROUPS, {}, limit=whole - 1))[0].keys() == {"rsp-1", "rsp-3"}
    assert from_bytes(to_bytes(GROUPS, CERTIFICATES, limit=1)) == ({}, {})


@pytest.mark.parametrize(
    "content",
    [
        {"groups": [["rsp-1"]], "certificates": {}},
        {"groups": [], "certificates": {"lb-1/443": {"a": 1}}},
    ],
)
def test_other_content_is_refused(content: Mapping[str, object]) -> None:
    with pytest.raises(ValueError, match="damaged"):
        from_bytes(packed(1, content))


def test_a_restart_with_a_checkpoint_reads_no_group(account: Balancing) -> None:
    https = prefixed({"protocol-port": "https:443", "cert-id": "cert-1", "domain-extensions": "a.example.com:cert-a"})
    before = served(account, account.cluster(), service(https, port(443), port(80)))
    before.resync()
    checkpoint = before.cloud.load_balancers.dump(1 << 20)
    cloud = account.new_cloud()
    cloud.load_balancers.restore(checkpoint)
    account.calls()

    found = cloud.load_balancers.read()

    assert not {"slb.DescribeVServerGroupAttribute", "slb.DescribeDomainExtensions"} & account.calls().keys()
    assert found == Running(account, before.cluster).cloud.load_balancers.read()

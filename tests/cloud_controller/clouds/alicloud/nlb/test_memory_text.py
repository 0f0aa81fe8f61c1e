"""The cache of servers and certificates outlives the process."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.alicloud.nlb.memory_text import _FORMAT, from_bytes, to_bytes
from cloud_controller.clouds.alicloud.nlb.wire import Server
from cloud_controller.clouds.common.checkpoint import packed
from tests.cloud_controller.clouds.alicloud.nlb.balancing import NlbAccount, Process
from tests.cloud_controller.clouds.alicloud.nlb.services import built, port

TLS = {"protocol-port": "tcpssl:443", "cert-id": "cert-1", "additional-cert-ids": "cert-2"}


def server(number: int) -> Server:
    return Server(f"i-{number}", "Ecs", None, 80, 100)


def test_a_restart_with_the_checkpoint_reads_lists_alone() -> None:
    account, wanted = NlbAccount(), built(port(443), annotations=TLS)
    first = Process(account)
    first.converge(wanted)
    memory = first.nlb.dump(1 << 20)
    assert first.nlb.dump(1 << 20) == memory

    second = Process(account)
    second.nlb.restore(memory)
    account.counts()

    assert second.plan(wanted) == []
    assert account.counts() == {"ListLoadBalancers": 1, "ListServerGroups": 1, "ListListeners": 1}


def test_the_largest_groups_go_first_if_there_is_no_room() -> None:
    servers = {"sgp-1": (server(1),), "sgp-2": tuple(map(server, range(500)))}

    small = to_bytes(servers, {"lsn-1": ("cert-1",)}, limit=400)

    assert len(small) <= 400
    assert from_bytes(small) == ({"sgp-1": (server(1),)}, {"lsn-1": ("cert-1",)})


def test_other_content_is_refused() -> None:
    with pytest.raises(ValueError, match="damaged"):
        from_bytes(packed(_FORMAT, {"servers": {"sgp-1": [["i-1"]]}, "certificates": {}}))


def test_both_kinds_share_a_checkpoint() -> None:
    cloud = NlbAccount().cloud()
    memory = cloud.load_balancers.dump(1 << 20)

    cloud.load_balancers.restore(memory)

    assert cloud.load_balancers.dump(1 << 20) == memory
    for damaged in (b"", memory[:-1], memory[:20]):
        with pytest.raises(ValueError, match="damaged"):
            cloud.load_balancers.restore(damaged)

"""What is remembered of network load balancers: believed while it is true, kept for a restart, and small."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from cloud_controller.clouds.aws.memory import Known, KnownGroup, KnownListener, Memory, name_in
from cloud_controller.clouds.aws.memory_text import _FORMAT, from_bytes, to_bytes
from cloud_controller.clouds.aws.names import LOAD_BALANCER_TAG, POOL_TAG
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.checkpoint import packed
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import HealthCheck, Listener, Pool
from tests.clock import Clock

WEB = "k8s-default-web-0123456789"
ACCOUNT = "arn:aws:elasticloadbalancing:eu-central-1:123456789012"
LB = f"{ACCOUNT}:loadbalancer/net/{WEB}/0f1e2d3c4b5a6978"
GROUP = f"{ACCOUNT}:targetgroup/k8s-default-web-9876543210/0f1e2d3c4b5a6978"
LIMIT = 900_000


def known(*addresses: str, port: int = 30080) -> Known:
    listener = Listener("TCP", 443, "tcp-443", {"protocol": "TLS", "certificates": ("a", "b"), "ssl_policy": "x"})
    pool = Pool(
        "tcp-443",
        HealthCheck("HTTP", None, "/healthz", 10, 6, 3, 2),
        tuple(Member(address, port, address) for address in addresses),
        {"protocol": "TCP", "target_type": "instance", "stickiness.enabled": "false"},
    )
    return Known(
        LB,
        {"load_balancing.cross_zone.enabled": "true"},
        {443: KnownListener(f"{LB}/listener", listener)},
        {"tcp-443": KnownGroup(GROUP, pool, attached=True)},
        {"eip_allocations": ("eipalloc-1",), "private_ipv4_addresses": ()},
    )


# ------------------------------------------------------------------------------------------------- what is believed


def test_after_a_change_that_failed_nothing_is_known_but_what_was_once() -> None:
    memory = Memory(Cache())
    memory.put(WEB, known())

    with pytest.raises(OSError), memory.cache.changing(WEB):
        raise OSError

    assert memory.get(WEB) is None
    assert memory.last(WEB) == known()


def test_parts_are_found_by_their_load_balancer() -> None:
    memory = Memory(Cache())
    memory.tags.put(LB, {})
    memory.tags.put(GROUP, {LOAD_BALANCER_TAG: WEB, POOL_TAG: "tcp-443"})

    assert memory.named(WEB) == [LB]
    assert memory.groups(WEB) == {"tcp-443": GROUP}
    assert name_in(GROUP) == ""


def test_what_a_list_does_not_show_is_forgotten() -> None:
    memory = Memory(Cache())
    memory.put(WEB, known())
    memory.views.read(WEB, {}, memory.cache.moment())
    memory.tags.put(LB, {})

    memory.keep_only((), (), memory.cache.moment())

    assert memory.last(WEB) is None
    assert memory.views.get(WEB) is None
    assert memory.tags.get(LB) is None


def test_but_not_what_was_made_while_the_list_was_read() -> None:
    memory = Memory(Cache())
    began = memory.cache.moment()
    with memory.cache.changing(WEB):
        memory.tags.put(GROUP, {LOAD_BALANCER_TAG: WEB})
        memory.tags.put(LB, {})
        memory.put(WEB, known())

    memory.keep_only((), (), began)

    assert memory.get(WEB) == known()
    assert memory.tags.get(GROUP) == {LOAD_BALANCER_TAG: WEB}
    assert memory.tags.get(LB) == {}


def test_what_a_list_does_not_show_is_forgotten_while_other_load_balancers_change() -> None:
    memory = Memory(Cache())
    memory.put(WEB, known())
    memory.tags.put(GROUP, {LOAD_BALANCER_TAG: WEB})
    began = memory.cache.moment()
    with memory.cache.changing("another"):
        memory.keep_only((), (), began)

    assert memory.last(WEB) is None
    assert memory.tags.get(GROUP) is None


def test_what_was_made_is_believed_for_a_minute_though_no_list_shows_it() -> None:
    clock = Clock(1000.0)
    memory = Memory(Cache(clock))
    memory.made.put(WEB, {"LoadBalancerName": WEB})
    memory.tags.put(GROUP, {LOAD_BALANCER_TAG: WEB})

    clock.now += 59
    memory.keep_only({WEB}, {LB}, memory.cache.moment())
    assert [*memory.made.fresh()] == [WEB]
    assert memory.tags.get(GROUP) is not None

    clock.now += 2
    memory.keep_only({WEB}, {LB}, memory.cache.moment())
    assert memory.made.fresh() == {}
    assert memory.tags.get(GROUP) is None


# ------------------------------------------------------------------------------------------------------ what is kept


def test_all_of_it_is_kept() -> None:
    tags = {LB: {"kubernetes.io/cluster": "prod-1"}, GROUP: {POOL_TAG: "tcp-443"}}
    mixed = known("i-1").with_group(
        "tcp-80",
        KnownGroup(
            "arn", Pool("tcp-80", HealthCheck("TCP", 10256), (Member("i-1", 1, "i-1"), Member("i-2", 2, "i-2")))
        ),
    )

    classic = {"k8s-shop-api-0123456789": {"idle_timeout.timeout_seconds": "60"}}

    written = to_bytes({WEB: mixed, "other": known()}, tags, classic, limit=LIMIT)

    assert from_bytes(written) == ({WEB: mixed, "other": known()}, tags, classic)


def test_a_tcp_listener_that_an_older_version_kept_has_what_aws_gives_it() -> None:
    older = Listener("TCP", 80, "tcp-80", {"protocol": "TCP"})
    with_it = replace(known(), listeners={80: KnownListener(f"{LB}/listener", older)})

    found, _, _ = from_bytes(to_bytes({WEB: with_it}, {}, {}, limit=LIMIT))

    assert found[WEB].listeners[80].listener.attributes == {"protocol": "TCP", "tcp.idle_timeout.seconds": "350"}


def test_the_same_memory_is_the_same_bytes() -> None:
    one, other = {"a": known("i-1"), "b": known()}, {"b": known(), "a": known("i-1")}

    assert to_bytes(one, {"x": {}, "y": {}}, {}, limit=LIMIT) == to_bytes(other, {"y": {}, "x": {}}, {}, limit=LIMIT)


def test_what_many_share_is_kept_once() -> None:
    nodes = [f"i-{random.randbytes(8).hex()}" for _ in range(1000)]

    one = to_bytes({"a": known(*nodes)}, {}, {}, limit=LIMIT)
    hundred = to_bytes({str(number): known(*nodes, port=number) for number in range(100)}, {}, {}, limit=LIMIT)

    assert len(hundred) < 1.5 * len(one)


def test_what_is_too_large_is_kept_without_the_largest() -> None:
    many = known(*(f"i-{random.randbytes(8).hex()}" for _ in range(1000)))

    found, tags, _ = from_bytes(to_bytes({"small": known("i-1"), "large": many}, {LB: {}}, {}, limit=3000))

    assert [*found] == ["small"]
    assert tags == {LB: {}}


def test_other_content_is_refused() -> None:
    with pytest.raises(ValueError, match="damaged"):
        from_bytes(packed(_FORMAT, {"sets": [], "known": {"a": {"listeners": 1}}, "tags": {}, "classic": {}}))

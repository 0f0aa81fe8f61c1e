"""The balancer's pure parts: schedulers, token bucket, health verdict."""

from __future__ import annotations

from collections import Counter

import pytest

from local.forwarding.target import Target
from local.mycloud.balancer.health import Verdict
from local.mycloud.balancer.schedulers import Candidate, LeastConnections, RoundRobin
from local.mycloud.balancer.sources import SourceRanges
from local.token_bucket import TokenBucket
from tests.clock import Clock

A, B, C = ("127.0.0.2", 1), ("127.0.0.3", 1), ("127.0.0.4", 1)


def test_round_robin_gives_each_backend_its_weight_without_long_runs() -> None:
    candidates = [Candidate(A, 4), Candidate(B, 1), Candidate(C, 1)]
    robin = RoundRobin()

    chosen = [robin.choose(candidates, {}) for _ in range(12)]

    assert Counter(chosen) == {A: 8, B: 2, C: 2}
    assert chosen[:6] == [A, A, B, A, C, A] or chosen[:6].count(A) == 4


def test_round_robin_continues_when_backends_are_added_and_removed() -> None:
    robin = RoundRobin()
    robin.choose([Candidate(A, 1), Candidate(B, 1)], {})

    chosen = [robin.choose([Candidate(B, 1), Candidate(C, 1)], {}) for _ in range(4)]

    assert Counter(chosen) == {B: 2, C: 2}


def test_least_connections_respects_the_weight() -> None:
    scheduler = LeastConnections()

    assert scheduler.choose([Candidate(A, 1), Candidate(B, 1)], {A: 2, B: 1}) == B
    assert scheduler.choose([Candidate(A, 4), Candidate(B, 1)], {A: 2, B: 1}) == A


def test_least_connections_fills_backends_by_their_weight() -> None:
    scheduler, active = LeastConnections(), Counter[Target]()

    for _ in range(16):
        chosen = scheduler.choose([Candidate(A, 3), Candidate(B, 1)], active)
        assert chosen
        active[chosen] += 1

    assert active == {A: 12, B: 4}


def test_least_connections_takes_turns_among_equals() -> None:
    scheduler = LeastConnections()

    chosen = [scheduler.choose([Candidate(A, 1), Candidate(B, 1)], {}) for _ in range(4)]

    assert Counter(chosen) == {A: 2, B: 2}


def test_no_scheduler_chooses_from_nothing() -> None:
    assert RoundRobin().choose([], {}) is None
    assert LeastConnections().choose([], {}) is None


@pytest.mark.parametrize(
    ("ranges", "client", "is_admitted"),
    [
        ([], "127.2.0.1", True),
        (["127.2.0.0/16"], "127.2.0.1", True),
        (["10.2.0.0/16"], "127.2.0.1", True),
        (["10.2.0.0/16", "10.3.0.0/16"], "127.3.0.1", True),
        (["10.2.0.0/16"], "127.3.0.1", False),
        (["10.2.0.0/16"], "192.2.0.1", False),
        (["192.2.0.0/16"], "192.2.0.1", True),
        (["fd00::/8"], "127.2.0.1", False),
        (["0.0.0.0/0"], "127.2.0.1", True),
    ],
)
def test_source_ranges_match_a_clients_loopback_or_cluster_address(
    ranges: list[str], client: str, is_admitted: bool
) -> None:
    assert SourceRanges(ranges).admits(client) is is_admitted


def test_a_bucket_admits_a_seconds_worth_at_once_and_then_its_rate() -> None:
    clock = Clock()
    bucket = TokenBucket(10, clock)

    assert [bucket.take() for _ in range(11)] == [True] * 10 + [False]
    clock.now += 0.25
    assert [bucket.take() for _ in range(3)] == [True, True, False]


def test_a_bucket_never_holds_more_than_a_second() -> None:
    clock = Clock()
    bucket = TokenBucket(3, clock)
    clock.now += 100

    assert [bucket.take() for _ in range(4)] == [True, True, True, False]


def test_the_first_result_decides_and_then_the_thresholds_do() -> None:
    verdict = Verdict(healthy_threshold=2, unhealthy_threshold=3)
    seen = []

    for passed in (True, False, False, True, False, False, False, True, True):
        verdict.add(passed)
        seen.append(verdict.healthy)

    assert seen == [True, True, True, True, True, True, False, False, True]

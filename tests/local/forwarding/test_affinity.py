"""The backend that a client keeps, and for how long."""

from __future__ import annotations

from local.forwarding import affinity
from local.forwarding.affinity import ClientAffinity
from tests.clock import Clock

A, B = ("127.2.0.1", 80), ("127.2.0.2", 80)


def test_a_client_keeps_its_backend_while_it_comes_back_in_time() -> None:
    clock = Clock()
    kept = ClientAffinity(10, clock)
    assert kept.choose("c", [A, B], lambda: A) == A

    for clock.now in (9.0, 18.0, 27.0):
        assert kept.choose("c", [A, B], lambda: B) == A
    clock.now = 37.0
    assert kept.choose("c", [A, B], lambda: B) == B


def test_a_backend_no_longer_offered_is_replaced_permanently() -> None:
    kept = ClientAffinity(10, Clock())
    kept.choose("c", [A, B], lambda: A)

    assert kept.choose("c", [B], lambda: B) == B
    assert kept.choose("c", [A, B], lambda: A) == B


def test_without_any_backend_nothing_is_remembered() -> None:
    kept = ClientAffinity(10, Clock())

    assert kept.choose("c", [], lambda: None) is None
    assert kept.choose("c", [A], lambda: A) == A


def test_a_shorter_timeout_applies_to_known_clients() -> None:
    clock = Clock()
    kept = ClientAffinity(10, clock)
    kept.choose("c", [A, B], lambda: A)

    kept.timeout = 5
    clock.now = 6.0

    assert kept.choose("c", [A, B], lambda: B) == B


def test_the_longest_absent_of_too_many_clients_is_forgotten() -> None:
    kept = ClientAffinity(10, Clock())
    for number in range(affinity.MAX_CLIENTS):
        kept.choose(f"c{number}", [A, B], lambda: A)

    kept.choose("one more", [A, B], lambda: A)

    assert kept.choose(f"c{affinity.MAX_CLIENTS - 1}", [A, B], lambda: B) == A
    assert kept.choose("c0", [A, B], lambda: B) == B

"""A process that is told to stop does, whatever the signal interrupts."""

from __future__ import annotations

import os
import signal

import pytest

from cloud_controller.stop_signals import stop_on_signals

PATIENCE = 60.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_the_event(number: signal.Signals) -> None:
    stop = stop_on_signals()
    assert not stop.is_set()

    os.kill(os.getpid(), number)

    assert stop.wait(PATIENCE)


@pytest.mark.timeout(120)
def test_a_signal_that_interrupts_the_main_thread_in_the_event_itself_sets_it() -> None:
    stop = stop_on_signals()

    # As in `wait`, or in `set` for an earlier signal.
    with vars(stop)["_cond"]:
        os.kill(os.getpid(), signal.SIGTERM)

    assert stop.wait(PATIENCE)


def test_further_signals_do_no_harm() -> None:
    stop = stop_on_signals()

    for _ in range(3):
        os.kill(os.getpid(), signal.SIGTERM)

    assert stop.wait(PATIENCE)

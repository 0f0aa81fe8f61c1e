"""Users' listeners that a Service takes over come back as they were, wherever a process dies.

NLB cannot change the protocol of a listener: it is deleted, with its tags, and made anew.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.cloud_controller.clouds.alicloud.deaths import every_death, life
from tests.cloud_controller.clouds.alicloud.nlb.test_reuse import NLB, Shared, of
from tests.cloud_controller.load_balancing import port, service

TCPSSL = {"protocol_port": "tcpssl:80", "cert_id": "cert-1"}


@pytest.mark.integration
@pytest.mark.parametrize("changes", [[TCPSSL], [{}, TCPSSL, {}]], ids=["anew", "anew later"])
def test_a_listener_that_is_made_anew_is_given_back_wherever_the_process_died(changes: list[dict[str, str]]) -> None:
    def survives(dies_at: int, writes: int) -> bool:
        account = Shared()
        forced: dict[str, Any] = {"id": account.user, "force_override_listeners": "true"}
        services = [service(of(**forced, **each), port(80), **NLB) for each in changes]
        return life(account, account.cluster(), account.user, services, dies_at, writes)

    for step in range(len(changes) + 1):
        every_death(lambda writes, step=step: survives(step, writes))  # type: ignore[misc]

"""The account of the stand-in: one region, its keys, quotas and objects, as its actions work on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local.standin.refusals import Refusal
from local.standin.store import Object, Store
from local.standin.world import World

REGION = "cn-hangzhou"
OWNER = 1234567890123456
"""The account's number."""

ACCESS_KEY, SECRET = "LTAI-stand-in", "the-secret-of-the-stand-in"
"""The administrator's."""


@dataclass
class Quotas:
    """What an account may have; a test lowers one to meet it."""

    custom_routes: int = 48
    """In a route table."""
    routes_a_call: int = 50
    load_balancers: int = 60
    """Of CLB and of NLB, each."""
    listeners: int = 50
    """Of a load balancer."""
    server_groups: int = 50
    """Of a CLB."""
    backends: int = 200
    """In a vServer group of CLB."""
    clb_backends_a_call: int = 20
    servers: int = 1000
    """In a server group of NLB."""
    nlb_servers_a_call: int = 200
    tags: int = 20
    """Of a resource, and in a call."""


class Account(World):
    """What the actions of all products share."""

    def __init__(
        self,
        store: Store | None = None,
        clock: Callable[[], float] = time.time,
        job_seconds: float = 0.2,
        region: str = REGION,
    ) -> None:
        super().__init__(store, clock, job_seconds)
        self.region = region
        self.quotas = Quotas()
        self.clb_settles = 0.0
        """Seconds after a change of a CLB in which it refuses another."""
        self.unhealthy: set[tuple[str, int]] = set()
        """Servers (an instance, interface or address), each with the port that fails its health checks; 0: all."""

    def new_id(self, prefix: str) -> str:
        """An id that was never given."""
        return f"{prefix}-bp1{self.store.next_number('id'):017x}"

    def now(self) -> str:
        """The time as the cloud's answers write it."""
        return as_text(self.clock())

    def find(self, kind: str, id: str, refusal: Refusal) -> Object:
        """The object; raises `refusal` if there is none."""
        found = self.store.get(kind, id)
        if found is None:
            raise refusal
        return found

    def is_healthy(self, server: str, port: int) -> bool:
        """What health checks find."""
        return not {(server, port), (server, 0)} & self.unhealthy

    def fill(self, kind: str, id: str, /, **changes: Any) -> Object:
        """Change fields of an object; returns the new one."""
        changed = {**(self.store.get(kind, id) or {}), **changes}
        self.store.put(kind, id, changed)
        return changed


def as_text(seconds: float) -> str:
    """A time such as 2026-11-23T08:00:00Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def given(arguments: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Those of the parameters that were given."""
    return {name: arguments[name] for name in names if name in arguments}

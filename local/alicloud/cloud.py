"""The stand-in of Alibaba Cloud, put together: in process, or served over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from local.alicloud import (
    clb_acls,
    clb_balancers,
    clb_certificates,
    clb_groups,
    clb_listeners,
    clb_tags,
    ecs,
    nlb_balancers,
    nlb_groups,
    nlb_jobs,
    nlb_listeners,
    nlb_servers,
    nlb_tags,
    quota_center,
    routes,
    security_groups,
    sts,
    vpc,
)
from local.alicloud.account import REGION, Account
from local.alicloud.dialect import AlibabaDialect
from local.alicloud.keys import add_administrator
from local.alicloud.metadata import Metadata
from local.alicloud.products import TABLE
from local.http_server import Application, config, serving
from local.standin.server import answering
from local.standin.standin import StandIn
from local.standin.store import Store

ACTIONS = (
    *(clb_acls, clb_balancers, clb_certificates, clb_groups, clb_listeners, clb_tags),
    *(nlb_balancers, nlb_groups, nlb_jobs, nlb_listeners, nlb_servers, nlb_tags),
    *(ecs, quota_center, routes, security_groups, sts, vpc),
)
"""Importing a module registers its actions."""


class AliCloud(StandIn[Account]):
    """One account in one region, with its administrator's key. Safe to use from any thread."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        region: str = REGION,
        clock: Callable[[], float] = time.time,
        job_seconds: float = 0.2,
    ) -> None:
        super().__init__(TABLE, AlibabaDialect(), Account(Store(path), clock, job_seconds, region))
        self.metadata = Metadata(self)
        with self.changing() as account:
            add_administrator(account)

    @contextmanager
    def served(self, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
        """Its URL, the endpoint of every product and of the metadata service, while a thread serves it."""
        with serving(config(Application(answering(self, self.metadata)), host, port)) as url:
            yield url

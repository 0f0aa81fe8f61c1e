"""Endpoints of the load balancers' data plane; only for the site's own token."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool

from local.mycloud import balancing
from local.mycloud.balancer_board import BalancerConfig, BalancerReport, ConfigAnswer
from local.mycloud.context import Context, Ctx
from local.mycloud.filters import Filter
from local.mycloud.models.balancing import LoadBalancerRecord

router = APIRouter(prefix="/internal/balancer", include_in_schema=False)

MAX_WAIT_SECONDS = 30.0


@router.get("/config")
async def follow_config(
    context: Ctx,
    since: Annotated[int, Query(ge=0)] = 0,
    boot: str | None = None,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_SECONDS)] = 0,
) -> ConfigAnswer:
    """What changed after version `since`; waits up to `wait` seconds for a change.

    A caller that names another start of the API (`boot`) gets an answer at once.
    """
    end = time.monotonic() + wait
    while True:
        with context.board.bell() as bell:
            answer = await run_in_threadpool(_config, context, since)
            left = end - time.monotonic()
            if answer.load_balancers or left <= 0 or boot not in (None, answer.boot):
                return answer
            await bell.wait(left)


@router.post("/reports", status_code=204)
def take_reports(context: Ctx, reports: list[BalancerReport]) -> Response:
    with context.store.write() as session:
        for report in reports:
            balancing.carried_out(session, report.id, report.generation, report.failures, report.closed)
    for report in reports:
        context.board.put(report)
    return Response(status_code=204)


def _config(context: Context, since: int) -> ConfigAnswer:
    with context.store.read() as session:
        changed = session.query(LoadBalancerRecord, Filter(changed_since=since))
        version = session.version
    return ConfigAnswer(
        boot=context.board.boot,
        version=version,
        load_balancers=[
            BalancerConfig.model_validate({**dict(balancing.public(each)), "generation": each.generation})
            for each in changed
        ],
    )

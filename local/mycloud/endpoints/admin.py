"""Endpoints for tests (faults, call counts, tokens, simulated machines) and for the load balancers' data plane."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool

from local.mycloud import access, balancing, compute
from local.mycloud.balancer_board import BalancerConfig, BalancerReport, ConfigAnswer
from local.mycloud.context import Context, Ctx
from local.mycloud.models import (
    Calls,
    CreateToken,
    Fault,
    IssuedToken,
    Items,
    LoadBalancerRecord,
    MadeMachines,
    SimulateMachines,
)
from local.mycloud.store import Filter

router = APIRouter(tags=["admin"])
data_plane = APIRouter(prefix="/internal/balancer", include_in_schema=False)

MAX_WAIT_SECONDS = 30.0


@router.get("/admin/faults")
def list_faults(context: Ctx) -> Items[Fault]:
    return Items(items=context.faults.all())


@router.post("/admin/faults", status_code=201)
def add_fault(context: Ctx, fault: Fault) -> Fault:
    context.faults.add(fault.model_copy())
    return fault


@router.delete("/admin/faults", status_code=204)
def clear_faults(context: Ctx) -> Response:
    context.faults.clear()
    return Response(status_code=204)


@router.get("/admin/calls")
def count_calls(context: Ctx) -> Calls:
    return Calls(calls=context.calls.all())


@router.delete("/admin/calls", status_code=204)
def forget_calls(context: Ctx) -> Response:
    context.calls.clear()
    return Response(status_code=204)


@router.post("/admin/tokens", status_code=201)
def issue_token(context: Ctx, request: CreateToken) -> IssuedToken:
    with context.store.write() as session:
        return access.issue(session, request)


@router.post("/admin/machines", status_code=201)
def simulate_machines(context: Ctx, request: SimulateMachines) -> MadeMachines:
    with context.store.write() as session:
        compute.simulate_machines(session, request)
    return MadeMachines(machines=request.count)


@data_plane.get("/config")
async def follow_config(
    context: Ctx,
    since: Annotated[int, Query(ge=0)] = 0,
    boot: str | None = None,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_SECONDS)] = 0,
) -> ConfigAnswer:
    """What changed after version `since`; waits up to `wait` seconds until something has.

    Who knows another start of the API (`boot`) hears of this one at once.
    """
    end = time.monotonic() + wait
    while True:
        with context.board.bell() as bell:
            answer = await run_in_threadpool(_config, context, since)
            left = end - time.monotonic()
            if answer.load_balancers or left <= 0 or boot not in (None, answer.boot):
                return answer
            await bell.wait(left)


@data_plane.post("/reports", status_code=204)
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

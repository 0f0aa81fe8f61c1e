"""Endpoints that prepare tests and benchmarks; only for the site's own token."""

from __future__ import annotations

from fastapi import APIRouter, Response

from local.mycloud import access, compute, quotas
from local.mycloud.context import Ctx
from local.mycloud.models.account import CreateToken, IssuedToken, Quotas, UpdateLimits
from local.mycloud.models.common import Items
from local.mycloud.models.compute import MadeMachines, SimulateMachines
from local.mycloud.models.staging import Calls, Fault, Lag

router = APIRouter(tags=["admin"])


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


@router.get("/admin/consistency")
def get_lag(context: Ctx) -> Lag:
    return Lag(lag_seconds=context.consistency.lag_seconds)


@router.put("/admin/consistency")
def set_lag(context: Ctx, request: Lag) -> Lag:
    context.consistency.lag_seconds = request.lag_seconds
    return request


@router.put("/admin/quotas")
def set_quotas(context: Ctx, request: UpdateLimits) -> Quotas:
    with context.store.write() as session:
        return Quotas(quotas=quotas.set_limits(session, request))


@router.post("/admin/tokens", status_code=201)
def issue_token(context: Ctx, request: CreateToken) -> IssuedToken:
    with context.store.write() as session:
        return access.issue(session, request)


@router.post("/admin/machines", status_code=201)
def simulate_machines(context: Ctx, request: SimulateMachines) -> MadeMachines:
    with context.store.write() as session:
        compute.simulate_machines(session, request)
    return MadeMachines(machines=request.count)


@router.delete("/admin/machines", status_code=204)
def end_simulated_machines(context: Ctx) -> Response:
    with context.store.write() as session:
        compute.end_simulated_machines(session)
    return Response(status_code=204)

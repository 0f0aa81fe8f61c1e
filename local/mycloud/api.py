"""mycloud's HTTP API: the application that serves `docs/mycloud-api.md`.

Endpoints are thin: each opens one transaction of the store and calls the rules of `networking`, `compute` or
`balancing`. What has to happen in the world is the lifecycle's work, which reads it from the store.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import Lifespan

from local.mycloud.context import Context, Ctx
from local.mycloud.endpoints import account, admin, balancing, compute, data_plane, networking, volumes
from local.mycloud.errors import ApiError, InvalidParameter, NotFound, Unavailable
from local.mycloud.gate import Gate, error_answer
from local.mycloud.models.common import ErrorAnswer
from local.mycloud.revision import revision
from local.state_folder import fingerprint

_REVISION = revision()
_PREFIX = "/v1"
_ROUTERS = (networking.router, compute.router, balancing.router, volumes.router, account.router, admin.router)


class MethodNotAllowed(ApiError):
    """The path exists, but not with this method."""

    status = 405
    code = "InvalidParameter"


def create_app(context: Context, lifespan: Lifespan[FastAPI] | None = None) -> FastAPI:
    """The application of one site; `lifespan` surrounds its serving."""
    app = _Api(
        title="mycloud",
        version="1",
        description="A private cloud on one machine.",
        responses={"default": {"model": ErrorAnswer}},
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.context = context
    for router in _ROUTERS:
        app.include_router(router, prefix=_PREFIX)
    app.include_router(data_plane.router)
    app.add_api_route("/healthz", _healthz, methods=["GET"], tags=["admin"])
    app.add_exception_handler(ApiError, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_parameters)
    app.add_exception_handler(HTTPException, _refuse_path)
    app.add_middleware(Gate, operations=_operations())
    context.store.observe(context.board.ring)
    return app


class _Api(FastAPI):
    """FastAPI with an OpenAPI document that matches the real answers of this API."""

    def openapi(self) -> dict[str, Any]:
        """The document; made once."""
        is_made = self.openapi_schema is not None
        document = super().openapi()
        if not is_made:
            document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}]
            document["paths"]["/healthz"]["get"]["security"] = []
            for methods in document["paths"].values():
                for operation in methods.values():
                    # FastAPI's own form of an invalid parameter, which here is a 400 in our form of errors.
                    operation["responses"].pop("422", None)
        return document


def _operations() -> list[str]:
    """Every operation as `METHOD /route/{template}`."""
    routers = [*((_PREFIX, router) for router in _ROUTERS), ("", data_plane.router)]
    routes = [(prefix, each) for prefix, router in routers for each in router.routes if isinstance(each, APIRoute)]
    return [f"{method} {prefix}{route.path}" for prefix, route in routes for method in sorted(route.methods or ())]


def _healthz(context: Ctx) -> dict[str, str]:
    if not context.is_healthy():
        raise Unavailable("the lifecycle has ended; requests are no longer carried out")
    return {"status": "ok", "site": fingerprint(context.token), "revision": _REVISION}


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error_answer(error)


async def _refuse_parameters(_: Request, error: Exception) -> Response:
    """The first invalid parameter, named by its path in the body or query."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = [str(part) for part in first["loc"][1:]]  # without the part: body, query or path
    message = str(first["msg"]).removeprefix("Value error, ")
    allowed = first.get("ctx", {}).get("expected")
    field = ".".join(where) or None
    return error_answer(
        InvalidParameter(f"{field}: {message}" if field else message, field=field, allowed=allowed and str(allowed))
    )


async def _refuse_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    operation = f"{request.method} {request.url.path}"
    if error.status_code == 405:
        return error_answer(MethodNotAllowed(f"mycloud has no operation {operation}"))
    if error.status_code == 404:
        return error_answer(NotFound(f"mycloud has no operation {operation}"))
    return error_answer(InvalidParameter(str(error.detail)))

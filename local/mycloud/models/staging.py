"""Requests that prepare tests and benchmarks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from local.mycloud.models.common import Strict


class Lag(Strict):
    """How long new objects are missing from lists."""

    lag_seconds: Annotated[float, Field(ge=0, le=3600)]


class Fault(Strict):
    """Make calls of an operation (a glob over "METHOD PATH") fail in a given way, or wait (`latency`: `seconds`).

    The first `after` matching calls succeed; each later one fails with `probability`, until `count` have (None: until
    the fault is deleted). `error`: the operation is not done, the answer has `status` and `code` (None: the status's
    own). `retry_after`, in seconds: the delay in a throttled answer.
    """

    operation: str
    kind: Literal["throttle", "drop_answer", "error", "latency"]
    count: Annotated[int, Field(ge=1)] | None = 1
    probability: Annotated[float, Field(ge=0, le=1)] = 1
    after: Annotated[int, Field(ge=0)] = 0
    retry_after: Annotated[float, Field(ge=0, le=3600)] = 1
    seconds: Annotated[float, Field(ge=0, le=3600)] = 1
    status: Annotated[int, Field(ge=400, le=599)] = 503
    code: Annotated[str, Field(min_length=1)] | None = None


class Calls(BaseModel):
    calls: dict[str, int]

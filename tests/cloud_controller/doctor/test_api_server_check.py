"""An API server that does not answer is found, with what to do about it."""

from __future__ import annotations

from typing import NoReturn

import pytest

from cloud_controller.doctor.checks.api_server import CHECK
from cloud_controller.doctor.seen import Seen, Target
from cloud_controller.kube import ApiError, UnauthorizedError, UnreachableError
from tests.cloud_controller.doctor.looks import NOW, World


def test_an_api_server_that_answers_is_no_finding() -> None:
    assert World().findings(CHECK) == []


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (UnauthorizedError(401, "Unauthorized", "the token has expired"), "get a new token or certificate"),
        (ApiError(500, "InternalError", "etcd is down"), "look at the API server's log"),
        (UnreachableError("connection refused"), "check the server's address"),
    ],
    ids=["unauthorized", "error", "unreachable"],
)
def test_an_api_server_that_does_not_answer_is_found(error: ApiError, remedy: str) -> None:
    def closed(*_: object) -> NoReturn:
        raise error

    (finding,) = CHECK.run(Seen(closed, closed, closed, Target(), now=lambda: NOW))
    assert finding.evidence == (str(error),)
    assert finding.remedy.startswith(remedy)

"""An API server that does not answer is found, with what to do about it."""

from __future__ import annotations

from typing import NoReturn

import pytest

from cloud_controller.doctor.checks.api_server import CHECK
from cloud_controller.doctor.findings import Severity
from cloud_controller.doctor.seen import Seen, Target, Unreadable
from cloud_controller.kube import NODES, ApiError, ForbiddenError, UnauthorizedError, UnreachableError
from tests.cloud_controller.doctor.looks import NOW, World

READYZ = "/readyz?verbose="


def not_ready(body: bytes) -> World:
    """A cluster whose API server says at /readyz that it is not ready."""
    world = World()
    error = ApiError(500, "InternalError", "the server failed")
    error.body = body
    world.api.raws[READYZ] = error
    return world


def test_an_api_server_that_is_ready_is_no_finding() -> None:
    world = World()
    world.api.raws[READYZ] = b"ok"

    assert world.findings(CHECK) == []


def test_an_api_server_that_is_not_ready_is_found_with_what_fails() -> None:
    world = not_ready(b"[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed")

    (finding,) = world.findings(CHECK)

    assert (finding.severity, finding.what) == (Severity.CRITICAL, "the API server answers, but is not ready")
    assert finding.evidence == ("etcd failed: reason withheld",)


def test_nothing_else_is_asked_of_an_api_server_without_etcd() -> None:
    world = not_ready(b"[-]etcd failed: reason withheld")

    with pytest.raises(Unreadable, match="not ready: etcd failed"):
        world.look().nodes()


def test_an_api_server_that_is_not_ready_for_another_reason_is_still_read() -> None:
    world = not_ready(b"[-]poststarthook/x failed: reason withheld")

    assert list(world.look().nodes()) == world.api.list(NODES).items
    (finding,) = world.findings(CHECK)
    # It hides no cause: what only warns has broken nothing yet.
    assert (finding.severity, finding.evidence) == (Severity.WARNING, ("poststarthook/x failed: reason withheld",))


def test_an_api_server_that_is_ready_at_the_second_look_is_no_finding() -> None:
    world = not_ready(b"[-]etcd failed: reason withheld")
    world.meanwhile = lambda: world.api.raws.update({READYZ: b"ok"})

    assert world.findings(CHECK) == []


def test_an_api_server_that_does_not_say_whether_it_is_ready_in_time_is_found() -> None:
    world = World()
    world.api.raws[READYZ] = UnreachableError("read timed out")

    (finding,) = world.findings(CHECK)

    assert (finding.what, finding.evidence) == ("the API server does not answer", ("read timed out",))
    with pytest.raises(Unreadable, match="read timed out"):
        world.look().nodes()


def test_an_api_server_whose_readiness_the_caller_may_not_read_is_not_checked_and_everything_else_is() -> None:
    world = World()
    world.api.raws[READYZ] = ForbiddenError(403, "Forbidden", 'cannot get path "/readyz"')

    with pytest.raises(Unreadable, match="does not let this kubeconfig read its /readyz"):
        world.findings(CHECK)
    assert list(world.look().nodes()) == world.api.list(NODES).items


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

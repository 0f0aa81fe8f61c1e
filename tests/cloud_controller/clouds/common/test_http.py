"""Each failure of a request says whether it may have had an effect, and no secret is in it."""

from __future__ import annotations

import socket
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cloud_controller import logs
from cloud_controller.cloud import CloudError, InvalidConfiguration, Unavailable
from cloud_controller.clouds.common.http import Http, observed
from cloud_controller.clouds.common.sendable import sendable
from cloud_controller.daemon.tls import ServerTls
from cloud_controller.fence import WriteRefused, unfenced
from cloud_controller.retries import NeverReached

SECRET = "a-secret-in-a-header"


@contextmanager
def listening(tls: ServerTls | None = None) -> Iterator[str]:
    """A server that reads of one connection and closes it without an answer; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.settimeout(10)
            try:
                with tls.wrap(connection) if tls else connection as stream:
                    stream.recv(4096)
            except OSError:
                pass  # The client did not trust the certificate.

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


def send(endpoint: str, fence: object = unfenced) -> None:
    Http("cloud X", timeout=5).send(
        "POST",
        endpoint,
        "/?a=b",
        what="x Create",
        headers={"token": SECRET},
        body=b"1",
        fence=fence,  # type: ignore[arg-type]
    )


def failure(endpoint: str) -> CloudError:
    with pytest.raises(CloudError) as failed:
        send(endpoint)
    assert SECRET not in "".join(traceback.format_exception(failed.value))
    return failed.value


def test_a_server_that_cannot_be_reached_had_no_effect() -> None:
    error = failure("http://127.0.0.1:1")

    assert type(error) is NeverReached
    assert "could not connect to cloud X at http://127.0.0.1:1 (Connection refused)" in str(error)


def test_a_connection_that_breaks_may_have_had_an_effect() -> None:
    with listening() as address:
        error = failure(f"http://{address}")

    assert type(error) is Unavailable
    assert "connection lost during x Create" in str(error)


def test_a_server_without_a_valid_certificate_is_never_sent_anything() -> None:
    with listening(ServerTls(None, "127.0.0.1")) as address:
        error = failure(f"https://{address}")

    assert type(error) is NeverReached
    assert f"could not verify the certificate of cloud X at https://{address}" in str(error)


def test_nothing_is_sent_when_the_fence_refuses() -> None:
    def closed() -> None:
        raise WriteRefused("not leading")

    with listening() as address, pytest.raises(WriteRefused):
        send(f"http://{address}", closed)


def test_the_observer_hears_of_success_and_failure() -> None:
    heard: list[tuple[str, CloudError | None]] = []
    error = Unavailable("no answer")

    def hears(name: str, _: float, failure: CloudError | None) -> None:
        heard.append((name, failure))

    with observed(hears, "x Get"):
        pass
    with pytest.raises(Unavailable), observed(hears, "x Create"):
        raise error

    assert heard == [("x Get", None), ("x Create", error)]


@pytest.mark.parametrize("secret", ["two words", "a\nline", "é"])
def test_a_secret_that_no_header_can_hold_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(InvalidConfiguration, match="token: not valid in an HTTP header") as refused:
        sendable("token", secret)

    assert secret not in str(refused.value)


def test_a_secret_is_hidden_from_logs() -> None:
    assert logs.redacted(f"said {sendable('token', SECRET)}") == "said [redacted]"

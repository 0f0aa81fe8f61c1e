"""The dynamic resource ApiServer: the program goes on once a control plane of its own answers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError, URLError

import pytest

from components.clouds.common import api_server

AUTHORITY = base64.b64encode(b"a certificate").decode()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Exception | None]:
    """What the API server does, in turn; None: it is ready."""
    given: list[Exception | None] = []

    @contextmanager
    def urlopen(url: str, *, context: Any, timeout: float) -> Iterator[None]:
        assert (url, context, timeout > 0) == ("https://api:6443/readyz", "a certificate", True)
        if (error := given.pop(0)) is not None:
            raise error
        yield

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    monkeypatch.setattr("ssl.create_default_context", lambda cadata: cadata)
    return given


def test_the_resource_is_made_when_the_api_server_is_ready(answers: list[Exception | None]) -> None:
    not_ready = HTTPError("https://api:6443/readyz", 500, "not ready", None, None)  # type: ignore[arg-type]
    answers += [URLError("no route"), TimeoutError("no answer"), not_ready, None]

    api_server.wait("https://api:6443", AUTHORITY, deadline=60, period=0)

    assert answers == []


def test_after_the_deadline_the_error_says_what_was_last_wrong(answers: list[Exception | None]) -> None:
    answers.append(URLError("no route"))

    with pytest.raises(TimeoutError, match=r"https://api:6443 is not ready after 0 s: .*no route"):
        api_server.wait("https://api:6443", AUTHORITY, deadline=0, period=1)


def test_another_endpoint_is_another_api_server() -> None:
    provider, before = api_server.ApiServerProvider(), {"endpoint": "https://a:6443", "authority": AUTHORITY}

    assert provider.diff("", before, before).changes is False
    assert provider.diff("", before, {**before, "endpoint": "https://b:6443"}).replaces == ["endpoint"]
    assert provider.diff("", before, {**before, "authority": "other"}).changes

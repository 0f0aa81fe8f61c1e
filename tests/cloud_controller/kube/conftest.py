"""The scripted API server, one for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cloud_controller.kube.scripted_server import ScriptedServer, serving


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """An API server that answers what the test writes down."""
    with serving() as running:
        yield running

"""The step's timeout limits the wait of a dynamic resource with the input `deadline`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from local.engine.providers.dynamic import DynamicProvider

from local.plugins.dynamic import DynamicServer
from local.plugins.provider import CreateRequest, UpdateRequest

pytestmark = pytest.mark.integration

PROVIDER = """
from pulumi.dynamic import CreateResult, Resource, ResourceProvider, UpdateResult

class Waiting(ResourceProvider):
    def create(self, props):
        return CreateResult("w", {**props, "waited": props.get("deadline")})

    def update(self, id, olds, news):
        return UpdateResult({**news, "waited": news.get("deadline")})
"""
URN = "urn:pulumi:dev::test::pulumi-python:dynamic:Resource::w"


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[DynamicProvider]:
    (tmp_path / "waiting_provider.py").write_text(PROVIDER)
    server = DynamicServer(tmp_path, "test", lambda _line: None)
    yield DynamicProvider(server, {}, "urn:pulumi:dev::test::pulumi:providers:pulumi-python::default", "id")
    server.close()


def inputs(**more: object) -> dict[str, object]:
    # As the SDK sends it: the provider pickled by reference, in base64.
    import base64

    pickled = b"\x80\x04cwaiting_provider\nWaiting\n)\x81."
    return {"__provider": base64.b64encode(pickled).decode(), **more}


@pytest.mark.parametrize(
    ("deadline", "timeout", "waited"),
    [(300, 5, 5), (300, 0, 300), (3, 5, 3), (None, 5, None)],
)
def test_the_shorter_of_deadline_and_timeout_counts_and_the_state_keeps_the_programs(
    provider: DynamicProvider, deadline: float | None, timeout: float, waited: float | None
) -> None:
    given = inputs(deadline=deadline)

    made = provider.create(
        CreateRequest(urn=URN, inputs=given, preview=False, timeout=timeout, report=lambda _: None)
    ).outputs
    updated = provider.update(
        UpdateRequest(
            urn=URN,
            id="w",
            old_inputs=given,
            old_outputs=made,
            news=given,
            ignore_changes=(),
            preview=False,
            timeout=timeout,
            report=lambda _: None,
        )
    )

    for outputs in (made, updated):
        assert (outputs.get("waited"), outputs.get("deadline")) == (waited, deadline)

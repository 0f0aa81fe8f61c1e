"""What the SDK's own server of dynamic providers, as Pulumi's CLI starts it, says of an error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from components.dynamic_provider import DynamicProvider
from tests.components.failing_providers import Broken, Refusing

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def server() -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    command = [sys.executable, "-u", "-m", "pulumi.dynamic"]
    environment = {**os.environ, "PULUMI_PROJECT": "p"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
            yield provider_pb2_grpc.ResourceProviderStub(channel)
        process.terminate()


def said(server: provider_pb2_grpc.ResourceProviderStub, provider: DynamicProvider) -> str:
    """The error of a deletion."""
    properties = Struct()
    properties.update({"__provider": serialize_provider(provider)})
    with pytest.raises(grpc.RpcError) as caught:
        server.Delete(provider_pb2.DeleteRequest(id="x", properties=properties))
    return str(caught.value.details())


def test_every_provider_of_a_component_is_one() -> None:
    found = [path for path in (ROOT / "components").rglob("*.py") if "(ResourceProvider)" in path.read_text()]

    assert found == [ROOT / "components" / "dynamic_provider.py"]


def test_an_error_for_people_is_its_message(server: provider_pb2_grpc.ResourceProviderStub) -> None:
    assert said(server, Refusing()) == "objects would stay: default/shop.\nDelete them first"


def test_a_bug_keeps_its_traceback(server: provider_pb2_grpc.ResourceProviderStub) -> None:
    error = said(server, Broken())

    assert error.startswith("Traceback (most recent call last):")
    assert "failing_providers.py" in error and error.endswith("KeyError: 'services'\n")

"""Check and diff against what pulumi-kubernetes 4.32 answered the real CLI, request by request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct

from local.engine.providers.kubernetes import KubernetesProvider
from local.engine.providers.provider import DiffKind, DiffRequest
from local.engine.values import UNKNOWN, PropertyMap
from local.engine.wire import from_struct

RECORDINGS = Path(__file__).parents[2] / "samples" / "recordings"


def recorded(verb: str) -> Iterator[Any]:
    for path in sorted(RECORDINGS.glob("*.jsonl")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            call = json.loads(line)
            if call["method"] == f"ResourceProvider/{verb}" and ":kubernetes:" in call["request"]["urn"]:
                name = call["request"]["urn"].rpartition("::")[2]
                yield pytest.param(call["request"], call["response"], id=f"{path.stem}:{number}:{name}")


def values(json_map: dict[str, Any] | None) -> PropertyMap:
    return from_struct(ParseDict(json_map or {}, Struct()))


def without_random_name(inputs: PropertyMap) -> PropertyMap:
    metadata = dict(inputs["metadata"])
    if metadata.get("annotations", {}).get("pulumi.com/autonamed"):
        metadata["name"] = metadata["name"].rpartition("-")[0]
    return inputs | {"metadata": metadata}


@pytest.fixture(scope="module")
def provider() -> KubernetesProvider:
    """No cluster is needed to check and to diff."""
    return KubernetesProvider({"kubeconfig": UNKNOWN})


@pytest.mark.parametrize(("request_", "response"), list(recorded("Check")))
def test_inputs_are_completed_as_the_clis_provider_does(
    provider: KubernetesProvider, request_: dict[str, Any], response: dict[str, Any]
) -> None:
    olds = values(request_.get("olds"))

    result = provider.check(request_["urn"], olds, values(request_["news"]))

    expected = values(response["inputs"])
    assert result.failures == ()
    assert without_random_name(result.inputs) == without_random_name(expected)
    if olds:
        assert result.inputs == expected, "an automatic name stays"


@pytest.mark.parametrize(("request_", "response"), list(recorded("Diff")))
def test_changes_are_judged_as_the_clis_provider_does(
    provider: KubernetesProvider, request_: dict[str, Any], response: dict[str, Any]
) -> None:
    found = provider.diff(
        DiffRequest(
            urn=request_["urn"],
            id=request_["id"],
            old_inputs=values(request_["oldInputs"]),
            old_outputs=values(request_["olds"]),
            news=values(request_["news"]),
            ignore_changes=[],
        )
    )

    # In protobuf's JSON form a field with the first value of its enumeration (ADD) is left out.
    kinds = {path: change.get("kind", "ADD") for path, change in response.get("detailedDiff", {}).items()}
    assert found.changed is (response["changes"] == "DIFF_SOME")
    assert list(found.replaces) == response.get("replaces", [])
    assert {path: change.kind for path, change in found.detailed.items()} == {
        path: DiffKind(kind.lower().replace("_", "-")) for path, kind in kinds.items()
    }
    if found.replaces:
        # Otherwise ours says what a replacement that the engine alone decides on would need.
        assert found.delete_before_replace is response.get("deleteBeforeReplace", False)

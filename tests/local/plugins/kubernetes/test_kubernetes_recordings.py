"""Check, diff and state against the answers of pulumi-kubernetes 4.32 and 4.34 to the real CLI, request by request.

`sample.jsonl` is of a program that makes, changes and replaces objects; `spellings.jsonl` of one with empty, false and
zero inputs and quantities in several spellings: unchanged, without the empty values, edited, and back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct

from local.plugins.kubernetes import KubernetesProvider
from local.plugins.kubernetes.api_types import type_of_urn
from local.plugins.kubernetes.check import check_inputs
from local.plugins.kubernetes.live import FIELD_MANAGER, INPUTS, outputs_of
from local.plugins.kubernetes.normal_form import with_dashes
from local.plugins.provider import DiffKind, DiffRequest
from local.plugins.values import UNKNOWN, PropertyMap, without_secrets
from local.plugins.wire import from_struct

RECORDINGS = Path(__file__).parent / "recordings"


def recorded(verb: str) -> Iterator[Any]:
    for path in sorted(RECORDINGS.glob("*.jsonl")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            call = json.loads(line)
            request = call["request"]
            if call["method"] != f"ResourceProvider/{verb}" or ":kubernetes:" not in request["urn"]:
                continue
            if not request.get("preview"):
                name = request["urn"].rpartition("::")[2]
                yield pytest.param(request, call["response"], id=f"{call['run']}:{number}:{name}")


def values_of(data: Any) -> PropertyMap:
    return from_struct(ParseDict(data or {}, Struct()))


def without_random_name(inputs: PropertyMap) -> PropertyMap:
    metadata = dict(inputs["metadata"])
    if metadata.get("annotations", {}).get("pulumi.com/autonamed"):
        metadata["name"] = metadata["name"].rpartition("-")[0]
    return inputs | {"metadata": metadata}


@pytest.fixture(scope="module")
def provider() -> KubernetesProvider:
    """check and diff need no cluster."""
    return KubernetesProvider({"kubeconfig": UNKNOWN})


@pytest.mark.parametrize(("request_", "response"), list(recorded("Check")))
def test_inputs_are_completed_as_the_clis_provider_does(request_: dict[str, Any], response: dict[str, Any]) -> None:
    olds, api = values_of(request_.get("olds")), type_of_urn(request_["urn"])
    # The CLI's provider assumes that a kind that no API server knows yet has namespaces; ours leaves it open.
    namespaced = api.namespaced is not False

    result = check_inputs(
        request_["urn"], api, olds, values_of(request_["news"]), namespaced=namespaced, default_namespace="default"
    )

    expected = values_of(response["inputs"])
    assert result.failures == ()
    assert without_random_name(result.inputs) == without_random_name(expected)
    if olds:
        assert result.inputs == expected, "an automatic name stays"


@pytest.mark.parametrize(("request_", "response"), list(recorded("Diff")))
def test_differences_are_those_of_the_clis_provider(
    provider: KubernetesProvider, request_: dict[str, Any], response: dict[str, Any]
) -> None:
    found = provider.diff(
        DiffRequest(
            urn=request_["urn"],
            id=request_["id"],
            old_inputs=values_of(request_["oldInputs"]),
            old_outputs=values_of(request_["olds"]),
            news=values_of(request_["news"]),
            ignore_changes=[],
        )
    )

    # In protobuf's JSON form a field with the first value of its enumeration (ADD) is omitted.
    kinds = {path: change.get("kind", "ADD") for path, change in response.get("detailedDiff", {}).items()}
    if ":Secret::" in request_["urn"] and kinds:
        # A secret differs as a whole, which hides its parts.
        kinds = {"data": "UPDATE_REPLACE"}
    assert found.changed is (response["changes"] == "DIFF_SOME")
    assert bool(found.replaces) is bool(response.get("replaces"))
    assert {path: change.kind for path, change in found.detailed.items()} == {
        path: DiffKind(kind.lower().replace("_", "-")) for path, kind in kinds.items()
    }
    if found.replaces:
        # Otherwise ours reports the requirements of a replacement that only the engine decides.
        assert found.delete_before_replace is response.get("deleteBeforeReplace", False)


@pytest.mark.parametrize(("request_", "response"), list(recorded("Create")))
def test_the_state_of_a_live_object_is_the_clis(request_: dict[str, Any], response: dict[str, Any]) -> None:
    expected = values_of(response["properties"])
    # The API server's answer is in the state unchanged, except for what Pulumi's provider adds and wraps.
    live = with_dashes(without_secrets({k: v for k, v in expected.items() if not k.startswith("__")}))
    inputs = with_dashes(expected[INPUTS])

    found = outputs_of(type_of_urn(request_["urn"]), live, inputs, expected[FIELD_MANAGER])

    assert found == expected


def test_a_state_from_before_the_normal_form_shows_no_change(provider: KubernetesProvider) -> None:
    urn = "urn:pulumi:dev::sample::kubernetes:core/v1:ConfigMap::settings"
    metadata = {"name": "settings", "namespace": "default"}
    old = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata | {"annotations": {}}, "data": {}}
    new = provider.check(urn, old, old).inputs

    found = provider.diff(
        DiffRequest(
            urn=urn,
            id="default/settings",
            old_inputs=old,
            old_outputs={"metadata": metadata},
            news=new,
            ignore_changes=[],
        )
    )

    assert new == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    assert found.changed is False

"""The merge of `kubectl apply`: what the manifest names is set, what only the last one named goes, the rest stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud_controller.cli.service_merge import LAST_APPLIED, last_applied, merged
from cloud_controller.kube import Object


def service(annotations: dict[str, Any] | None = None, **spec: Any) -> Object:
    metadata: Object = {"name": "web", "namespace": "default"}
    return {"metadata": metadata | ({} if annotations is None else {"annotations": annotations}), "spec": spec}


def spec_of(last: Object, manifest: Object, live: Object) -> Any:
    return merged(last, manifest, live)["spec"]


def port(number: int, **more: Any) -> Object:
    return {"port": number, **more}


def test_fields_of_others_stay_and_those_that_are_no_longer_named_go() -> None:
    live = service(type="LoadBalancer", sessionAffinity="None", loadBalancerSourceRanges=["10.0.0.0/8"])

    found = spec_of(service(loadBalancerSourceRanges=["10.0.0.0/8"]), service(type="ClusterIP"), live)

    assert found == {"type": "ClusterIP", "sessionAffinity": "None"}


def test_a_manifest_without_annotations_removes_only_those_that_it_had() -> None:
    live = service({"mine": "1", "theirs": "2", LAST_APPLIED: "…"}, type="ClusterIP")

    found = merged(service({"mine": "1"}), service(), live)["metadata"]["annotations"]

    assert {key: found[key] for key in found if key != LAST_APPLIED} == {"theirs": "2"}
    assert json.loads(found[LAST_APPLIED]) == service()


def test_a_null_removes_a_field() -> None:
    assert spec_of(service(), service(selector=None), service(selector={"a": "b"}, type="x")) == {"type": "x"}


@pytest.mark.parametrize(
    ("last", "manifest", "live", "expected"),
    [
        # A port keeps its node port, whatever else of it changes.
        (
            [port(80, name="a")],
            [port(80, name="b")],
            [port(80, name="a", nodePort=30001)],
            [port(80, name="b", nodePort=30001)],
        ),
        # Removed, added, and added by somebody else.
        (
            [port(80), port(443)],
            [port(80), port(8443)],
            [port(80), port(443), port(9)],
            [port(80), port(8443), port(9)],
        ),
        # One number with two protocols: two ports.
        (
            [port(53, protocol="TCP"), port(53, protocol="UDP")],
            [port(53, protocol="UDP")],
            [port(53, protocol="TCP", nodePort=1), port(53, protocol="UDP", nodePort=2)],
            [port(53, protocol="UDP", nodePort=2)],
        ),
        # The API server says what is wrong with these.
        ([port(80)], [port(80), port(80)], [port(80)], [port(80), port(80)]),
        ([], ["x"], [], ["x"]),
    ],
)
def test_ports_are_merged_by_their_number(last: Any, manifest: Any, live: Any, expected: Any) -> None:
    assert spec_of(service(ports=last), service(ports=manifest), service(ports=live))["ports"] == expected


def test_finalizers_of_others_stay() -> None:
    def with_(*finalizers: str) -> Object:
        return {"metadata": {"name": "web", "namespace": "default", "finalizers": [*finalizers]}, "spec": {}}

    found = merged(with_("a", "b"), with_("a"), with_("a", "b", "controllers"))

    assert found["metadata"]["finalizers"] == ["a", "controllers"]


def test_a_service_that_does_not_differ_is_the_stored_one() -> None:
    live = service({"a": "1", LAST_APPLIED: "…"}, type="ClusterIP", clusterIP="10.0.0.1")

    assert merged(service({"a": "1"}, type="ClusterIP"), service({"a": "1"}, type="ClusterIP"), live) is live


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_what_is_not_a_recorded_manifest_counts_as_none(text: str) -> None:
    assert last_applied(service({LAST_APPLIED: text})) is None


def test_wrong_types_are_left_to_the_api_server() -> None:
    manifest = {"metadata": {"name": "web", "annotations": ["x"]}, "spec": "y"}

    assert merged({}, manifest, service({"a": "1"}))["metadata"]["annotations"] == ["x"]

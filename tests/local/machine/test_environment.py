"""Environment, arguments and field values of a container's process."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from local.machine.environment import ApiServer, PodContext, arguments, environment, expand, rewrite_paths
from local.machine.images import Image, find_image
from local.machine.sources import MissingSourceError, Sources, field_value, references

POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": "web"}, "annotations": {"a": 'say "hi"'}},
    "spec": {"nodeName": "node-1", "serviceAccountName": "sa", "containers": []},
}


def context() -> PodContext:
    return PodContext(POD, "10.20.0.2", "10.17.0.5", ApiServer("127.16.1.1", 6443))


def env_of(env: list[dict[str, Any]], sources: Sources | None = None, **more: Any) -> dict[str, str]:
    return environment({"name": "c", "env": env, **more}, context(), sources or Sources())


def from_field(path: str) -> str:
    return env_of([{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}])["X"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "n"),
        ("metadata.uid", "u"),
        ("metadata.labels['app']", "web"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['a']", 'say "hi"'),
        ("spec.nodeName", "node-1"),
        ("spec.serviceAccountName", "sa"),
    ],
)
def test_a_field_reference_becomes_the_fields_value(path: str, value: str) -> None:
    assert from_field(path) == value


@pytest.mark.parametrize(("path", "value"), [("status.podIP", "127.20.0.2"), ("status.hostIPs", "127.17.0.5")])
def test_an_address_field_is_one_that_a_process_can_bind(path: str, value: str) -> None:
    assert from_field(path) == value


def test_a_pods_host_name_is_its_own_or_on_the_hosts_network_the_machines() -> None:
    hosts = {**POD, "spec": {**POD["spec"], "hostNetwork": True}}

    def host_name(pod: dict[str, Any]) -> str:
        around = PodContext(pod, "10.20.0.2", "10.17.0.5", ApiServer("127.16.1.1", 6443))
        return environment({"name": "c"}, around, Sources())["HOSTNAME"]

    assert host_name(POD) == "p"
    assert host_name(hosts) == "node-1"


def test_an_unknown_field_is_an_error() -> None:
    with pytest.raises(MissingSourceError, match=r"status\.phase"):
        from_field("status.phase")


def test_the_labels_field_has_quoted_lines() -> None:
    assert field_value(POD, "metadata.annotations", pod_ip="10.0.0.2", host_ip="10.0.0.3") == 'a="say \\"hi\\""'


def test_references_to_earlier_variables_are_expanded_and_to_later_ones_are_not() -> None:
    env = env_of(
        [
            {"name": "A", "value": "1"},
            {"name": "B", "value": "$(A)$(C) $$(A) $(KUBERNETES_SERVICE_PORT)"},
            {"name": "C", "value": "3"},
        ]
    )
    assert env["B"] == "1$(C) $(A) 6443"


def test_secret_and_config_map_values_are_used_and_env_overrides_env_from() -> None:
    sources = Sources(
        secrets={"s": {"data": {"token": base64.b64encode(b"t0p").decode()}}},
        config_maps={"m": {"data": {"A": "from map", "B": "b"}}},
    )
    env = env_of(
        [{"name": "A", "value": "own"}, {"name": "T", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}}],
        sources,
        envFrom=[{"configMapRef": {"name": "m"}}, {"configMapRef": {"name": "m"}, "prefix": "M_"}],
    )
    assert (env["A"], env["B"], env["M_A"], env["T"]) == ("own", "b", "from map", "t0p")


def test_a_missing_key_is_an_error_unless_it_is_optional() -> None:
    reference = {"name": "s", "key": "k"}
    with pytest.raises(MissingSourceError, match='secret "s" not found'):
        env_of([{"name": "X", "valueFrom": {"secretKeyRef": reference}}])

    assert "X" not in env_of([{"name": "X", "valueFrom": {"secretKeyRef": {**reference, "optional": True}}}])


def test_secret_values_are_in_no_representation() -> None:
    assert "dDBw" not in repr(Sources(secrets={"s": {"data": {"token": "dDBw"}}}))


def test_arguments_expand_and_replace_only_the_images_own_arguments() -> None:
    image = Image(("serve",), ("--default",))
    assert arguments({"args": ["--port=$(PORT)", "$(NO)"]}, image, {"PORT": "1"}) == ["serve", "--port=1", "$(NO)"]
    assert arguments({}, image, {}) == ["serve", "--default"]
    assert arguments({"command": ["sh"], "args": ["-c"]}, image, {}) == ["sh", "-c"]


def test_a_dollar_sign_without_a_known_name_stays() -> None:
    assert expand("a$b $() $(", {}) == "a$b $() $("


def test_mount_paths_are_rewritten_whole_and_the_longest_wins() -> None:
    places = {"/etc/x": "/p/x", "/etc/x/sub": "/p/sub"}
    assert rewrite_paths("--file=/etc/x/y", places) == "--file=/p/x/y"
    assert rewrite_paths("/etc/x/sub/z:/etc/x", places) == "/p/sub/z:/p/x"
    assert (
        rewrite_paths("/etc/xylophone /usr/etc/x http://h/etc/x", places) == "/etc/xylophone /usr/etc/x http://h/etc/x"
    )


def test_references_include_everything_to_fetch() -> None:
    spec = {
        "containers": [
            {
                "name": "c",
                "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s1", "key": "k"}}}],
                "envFrom": [{"configMapRef": {"name": "m1"}}],
            }
        ],
        "volumes": [
            {"name": "a", "secret": {"secretName": "s2"}},
            {
                "name": "b",
                "projected": {"sources": [{"secret": {"name": "s3"}}, {"serviceAccountToken": {"path": "t"}}]},
            },
        ],
    }
    found = references({"spec": spec})
    assert sorted(found.secrets) == ["s1", "s2", "s3"]
    assert sorted(found.config_maps) == ["m1"]
    assert [(wish.audience, wish.seconds) for wish in found.tokens] == [(None, 3600)]


@pytest.mark.parametrize("reference", ["web:1", "other.local/web:1", "registry.local/nginx:1"])
def test_an_image_outside_the_catalogue_is_unknown(reference: str) -> None:
    assert find_image(reference) is None


@pytest.mark.parametrize("reference", ["registry.local/web", "registry.local/web:2", "registry.local/web@sha256:0a"])
def test_an_image_of_the_catalogue_is_known_by_any_tag(reference: str) -> None:
    assert find_image(reference) is not None

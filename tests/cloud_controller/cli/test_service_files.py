"""Manifests as kubectl takes them: streams, lists, JSON and directories; errors name file, line and document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cloud_controller.cli import service_files
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.kube import Object

WEB = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - port: 80\n"


def parsed(text: str, namespace: str = "default") -> service_files.Manifests:
    return service_files.parse([("a.yaml", text)], namespace)


def service(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}


def test_documents_are_read_one_by_one_and_empty_ones_are_skipped() -> None:
    found = parsed(f"# a comment\n---\n---\n{WEB}---\nkind: ConfigMap\napiVersion: v1\n---\n{WEB.replace('web', 'db')}")

    assert [(each.key, str(each.source), each.source.document) for each in found.services] == [
        ("default/web", "a.yaml:4", 1),
        ("default/db", "a.yaml:15", 3),
    ]
    assert found.ignored == 1


def test_lines_are_those_of_the_file_and_of_the_nearest_known_field() -> None:
    [web] = parsed(f"---\n{WEB}").services

    assert web.source.line_of("spec.ports[0].port") == 8
    assert web.source.line_of("spec.ports[0].nodePort") == 8
    assert web.source.line_of("spec.ports[3].nodePort") == 7
    assert web.source.line_of("metadata.annotations.example.com/a") == 4
    assert web.source.line_of("") == 2


@pytest.mark.parametrize("kind", ["List", "ServiceList"])
def test_lists_are_taken_apart_and_their_items_have_lines_of_their_own(kind: str) -> None:
    items = [service("a"), service("b")] if kind == "List" else [{"metadata": {"name": name}} for name in "ab"]
    text = json.dumps({"apiVersion": "v1", "kind": kind, "items": items}, indent=1)

    found = parsed(text)

    assert [each.key for each in found.services] == ["default/a", "default/b"]
    for each in found.services:
        line = each.source.line_of("metadata.name")
        assert f'"{each.object["metadata"]["name"]}"' in text.splitlines()[line - 1]


def test_json_may_be_indented_by_tabs_and_follow_other_json_without_a_separator() -> None:
    text = "\n".join(json.dumps(service(name), indent="\t") for name in ("a", "b"))

    found = parsed(text)

    assert [(each.key, each.source.line) for each in found.services] == [("default/a", 1), ("default/b", 8)]


def test_the_namespace_is_the_services_own_or_the_contexts() -> None:
    text = WEB + "---\n" + WEB.replace("name: web", "name: web\n  namespace: shop")

    assert [each.key for each in parsed(text, "team").services] == ["team/web", "shop/web"]


def test_namespaces_among_the_manifests_are_known() -> None:
    assert parsed("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}").namespaces == {"shop"}


def test_a_service_of_another_group_is_another_object() -> None:
    assert parsed("{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}}").ignored == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- a", "a.yaml:1: document 1: not a Kubernetes object"),
        (f"{WEB}---\nkind: Service\n", "a.yaml:9: document 2: not a Kubernetes object: apiVersion is missing"),
        ("a: {", "a.yaml: not valid YAML (line 1)"),
        (f"{WEB}---\n{WEB}", "a.yaml:9: document 2: Service default/web is also in a.yaml:1"),
        (
            "{apiVersion: v1, kind: Service, metadata: {generateName: a-}}",
            "document 1: a Service without metadata.name",
        ),
        ("{apiVersion: v1, kind: Service, metadata: {name: 'a?force=true'}}", "is not a valid name"),
        ("{apiVersion: v1, kind: Service, metadata: {name: a, namespace: ../b}}", "is not a valid namespace"),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: 1}}",
            "namespace of Service a is not a string",
        ),
        (f"{WEB}spec: {{}}\n", "(line 8): duplicate key, also in line 5"),
        (
            "{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization}",
            "(allowed: the output of kustomize build)",
        ),
    ],
)
def test_errors_name_file_line_and_document(text: str, told: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        parsed(text)

    assert told in str(caught.value)


def test_a_directory_stands_for_its_manifests_and_for_those_below_it_only_if_asked(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for file in ("b.yml", "a.yaml", "c.json", "notes.txt", "sub/d.yaml"):
        (tmp_path / file).write_text("{}")

    def names(*, recursive: bool) -> list[str]:
        return [Path(name).name for name, _ in service_files.read([str(tmp_path)], recursive=recursive)]

    assert names(recursive=False) == ["a.yaml", "b.yml", "c.json"]
    assert names(recursive=True) == ["a.yaml", "b.yml", "c.json", "d.yaml"]


def test_a_directory_without_manifests_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"has no \*\.yaml"):
        service_files.read([str(tmp_path)])


def test_a_closed_stdin_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)

    with pytest.raises(InvalidConfiguration, match="stdin is closed"):
        service_files.read(["-"])


def test_stdin_can_be_read_only_once() -> None:
    with pytest.raises(InvalidConfiguration, match="stdin is named twice"):
        service_files.read(["-", "-"])

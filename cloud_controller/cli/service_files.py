"""Reads the Services in manifests as kubectl takes them: files, directories, and a stream on stdin.

`read` reads texts, `parse` is pure. Other objects are counted and otherwise ignored.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloud_controller import yaml_text
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controllers.service.plan import target_of
from cloud_controller.kube import Object

STDIN = "-"
_EXTENSIONS = frozenset({".json", ".yaml", ".yml"})
"""kubectl's."""
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_ELEMENT = re.compile(r"(\.[^.\[]+|\[\d+\])$")


@dataclass(frozen=True, slots=True)
class Source:
    """Where an object is: a file (`-`: stdin), the number of its document, its first line, and the lines of its fields.

    `lines`: by path, such as `spec.ports[0].port`.
    """

    file: str
    document: int
    line: int
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)

    def line_of(self, path: str) -> int:
        """The line of a field, or of the nearest one around it."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = _ELEMENT.sub("", path) if _ELEMENT.search(path) else ""
        return self.line

    @property
    def name(self) -> str:
        """The file's name for messages."""
        return "stdin" if self.file == STDIN else self.file

    def __str__(self) -> str:
        return f"{self.name}:{self.line}"


@dataclass(frozen=True, slots=True)
class GivenService:
    """A Service of the manifests, with its namespace."""

    object: Object
    source: Source

    @property
    def key(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.object['metadata']['namespace']}/{self.object['metadata']['name']}"

    @property
    def target(self) -> str:
        """Its target in plans."""
        return target_of(self.object["metadata"]["namespace"], self.object["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Manifests:
    """The Services, the number of other objects, and the namespaces that are among these."""

    services: tuple[GivenService, ...] = ()
    ignored: int = 0
    namespaces: frozenset[str] = frozenset()


def read(paths: Sequence[str], *, recursive: bool = False) -> list[tuple[str, str]]:
    """The texts of these files, directories and stdin (`-`), each with its name. Raises OSError.

    A directory stands for its files *.json, *.yaml and *.yml; those of its subdirectories only with `recursive`.
    """
    if paths.count(STDIN) > 1:
        raise InvalidConfiguration("filename", "stdin is named twice", "- once")
    return [text for path in paths for text in _texts(path, recursive)]


def parse(texts: Iterable[tuple[str, str]], namespace: str) -> Manifests:
    """The Services of these texts; `namespace`: of those that name none. Raises InvalidConfiguration."""
    services: dict[str, GivenService] = {}
    namespaces: set[str] = set()
    ignored = 0
    for file, text in texts:
        for source, found in _objects(file, text):
            if (found["apiVersion"], found["kind"]) != ("v1", "Service"):
                ignored += 1
                if found["kind"] == "Namespace" and isinstance(found.get("metadata"), dict):
                    namespaces.add(str(found["metadata"].get("name")))
                continue
            given = GivenService(_with_namespace(found, source, namespace), source)
            if (other := services.get(given.key)) is not None:
                raise _invalid(source, f"Service {given.key} is also in {other.source}")
            services[given.key] = given
    return Manifests(tuple(services.values()), ignored, frozenset(namespaces))


def _texts(path: str, recursive: bool) -> Iterator[tuple[str, str]]:
    if path == STDIN:
        if sys.stdin is None:
            raise InvalidConfiguration("filename", "stdin is closed", "an open stdin, or files")
        yield STDIN, _decoded("stdin", sys.stdin.buffer.read())
        return
    given = Path(path)
    if not given.is_dir():
        yield path, _decoded(path, given.read_bytes())
        return
    found = sorted(each for each in (given.rglob("*") if recursive else given.glob("*")) if each.is_file())
    found = [each for each in found if each.suffix in _EXTENSIONS]
    if not found:
        below = "" if recursive else " (subdirectories: --recursive)"
        raise InvalidConfiguration("filename", f"{path} has no *.yaml, *.yml or *.json{below}", "a directory with some")
    for each in found:
        yield str(each), _decoded(str(each), each.read_bytes())


def _decoded(name: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidConfiguration(name, "not a UTF-8 text file") from None


def _objects(file: str, text: str) -> Iterator[tuple[Source, Object]]:
    try:
        documents = yaml_text.documents(text)
    except yaml_text.NotYaml as error:
        raise InvalidConfiguration(Source(file, 1, 1).name, str(error)) from None
    for number, document in enumerate(documents, 1):
        yield from _expanded(Source(file, number, document.line, document.lines), document.value)


def _expanded(source: Source, value: Any) -> Iterator[tuple[Source, Object]]:
    """The object, or the items of a list of objects."""
    if not isinstance(value, dict):
        raise _invalid(source, "not a Kubernetes object")
    version, kind = value.get("apiVersion"), value.get("kind")
    for name, text in (("apiVersion", version), ("kind", kind)):
        if not isinstance(text, str) or not text:
            raise _invalid(source, f"not a Kubernetes object: {name} is missing or not a string")
    if str(version).startswith("kustomize.config.k8s.io/"):
        raise _invalid(source, f"a {kind}, which kubectl does not apply either", "the output of kustomize build")
    if not str(kind).endswith("List") or not isinstance(value.get("items"), list):
        yield source, value
        return
    for index, item in enumerate(value["items"]):
        within = f"items[{index}]"
        lines = {
            path.removeprefix(f"{within}."): line
            for path, line in source.lines.items()
            if path.startswith(f"{within}.")
        }
        # The items of a typed list (ServiceList) may leave out their own type.
        typed = {"apiVersion": version, "kind": str(kind).removesuffix("List")} if kind != "List" else {}
        inner = {**typed, **item} if isinstance(item, dict) else item
        yield from _expanded(Source(source.file, source.document, source.line_of(within), lines), inner)


def _with_namespace(service: Object, source: Source, namespace: str) -> Object:
    metadata = service.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        raise _invalid(source, "a Service without metadata.name")
    own = metadata.get("namespace") or namespace
    if not isinstance(own, str):
        raise _invalid(source, f"metadata.namespace of Service {name} is not a string")
    for each, what in ((name, "name"), (own, "namespace")):
        if not _NAME.fullmatch(each):  # They become parts of paths and targets.
            raise _invalid(source, f"metadata.{what} {each!r} is not a valid {what}", "lower-case letters, digits, - .")
    return {**service, "metadata": {**metadata, "namespace": own}}


def _invalid(source: Source, why: str, allowed: str | None = None) -> InvalidConfiguration:
    return InvalidConfiguration(str(source), f"document {source.document}: {why}", allowed)

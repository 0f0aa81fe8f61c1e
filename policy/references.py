"""Which entries of ConfigMaps and Secrets a pod reads: as files, and as variables of its environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policy.objects import dig, items
from policy.subjects import CONFIG_MAP, SECRET

_VOLUMES = (("secret", SECRET, "secretName"), ("configMap", CONFIG_MAP, "name"))
_PROJECTED = (("secret", SECRET, "name"), ("configMap", CONFIG_MAP, "name"))
_VARIABLES = (("secretKeyRef", SECRET), ("configMapKeyRef", CONFIG_MAP))
_ENVIRONMENTS = (("secretRef", SECRET), ("configMapRef", CONFIG_MAP))


@dataclass(frozen=True, slots=True)
class Reference:
    """An entry that a pod reads."""

    kind: str
    name: str
    key: str | None = None
    """None: all entries, each under its own name."""
    path: str | None = None
    """The file, relative to the volume, where it is not called like the entry."""


def references(pod: Mapping[str, Any]) -> Iterator[Reference]:
    """Everything that the pods of this spec read. Raises UnknownValueError."""
    for volume in items(dig(pod, "volumes")):
        yield from of_volume(volume)
    for field in ("initContainers", "containers"):
        for container in items(dig(pod, field)):
            yield from _of_environment(container)


def of_volume(volume: Mapping[str, Any]) -> Iterator[Reference]:
    """What a volume consists of, also by projection. Raises UnknownValueError."""
    for source, kinds in (
        (volume, _VOLUMES),
        *((source, _PROJECTED) for source in items(dig(volume, "projected", "sources"))),
    ):
        for field, kind, key in kinds:
            name = dig(source, field, key)
            if name and dig(source, field, "items"):
                for item in items(dig(source, field, "items")):
                    yield Reference(kind, str(name), str(dig(item, "key")), str(dig(item, "path")))
            elif name:
                yield Reference(kind, str(name))


def of_file(pod: Mapping[str, Any], container: Mapping[str, Any], path: str) -> list[Reference]:
    """Where a container's file comes from: several, where its volume leaves that open. Raises UnknownValueError."""
    # A volume may be mounted within another: the innermost has the file.
    for mount in sorted(items(dig(container, "volumeMounts")), key=lambda mount: -len(_root(mount))):
        root = _root(mount)
        if path != root and not path.startswith(f"{root}/"):
            continue
        file = "/".join(filter(None, (str(dig(mount, "subPath") or ""), path.removeprefix(root).lstrip("/"))))
        volumes = [each for each in items(dig(pod, "volumes")) if dig(each, "name") == dig(mount, "name")]
        found = [each for volume in volumes for each in of_volume(volume)]
        named = [each for each in found if each.path == file]
        return named or [Reference(each.kind, each.name, file) for each in found if each.path is None]
    return []


def _root(mount: Any) -> str:
    return str(dig(mount, "mountPath") or "").rstrip("/")


def _of_environment(container: Mapping[str, Any]) -> Iterator[Reference]:
    for variable in items(dig(container, "env")):
        for field, kind in _VARIABLES:
            if name := dig(variable, "valueFrom", field, "name"):
                yield Reference(kind, str(name), str(dig(variable, "valueFrom", field, "key")))
    for source in items(dig(container, "envFrom")):
        for field, kind in _ENVIRONMENTS:
            if name := dig(source, field, "name"):
                yield Reference(kind, str(name))

"""The content of a pod's volumes, written so that a reader never sees a half-changed volume."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from local.machine.sources import MissingSourceError, Sources, field_value, token_wish

Object = dict[str, Any]

DEFAULT_MODE = 0o644
_CURRENT = "..data"
_WRITTEN_BY_PODS = ("emptyDir", "hostPath", "persistentVolumeClaim")
_SUPPORTED = ("secret", "configMap", "projected", "downwardAPI", *_WRITTEN_BY_PODS)


@dataclass(frozen=True, slots=True)
class VolumeFile:
    """One file of a volume; `path` is relative to it."""

    path: str
    data: bytes
    mode: int

    def __repr__(self) -> str:  # the data may be a secret
        return f"VolumeFile({self.path!r}, {len(self.data)} bytes, {self.mode:o})"


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume, or a part of it, at a path of a container."""

    source: Path
    target: str
    read_only: bool


def unsupported_volume(volume: Object) -> str | None:
    """Why a machine cannot provide this volume, or None."""
    kinds = [kind for kind in volume if kind != "name"]
    if any(kind in _SUPPORTED for kind in kinds):
        return None
    return f"volume {volume['name']}: {', '.join(kinds) or 'no source'} is not one of {', '.join(_SUPPORTED)}"


def volume_files(
    volume: Object, pod: Object, sources: Sources, *, pod_ip: str, host_ip: str
) -> list[VolumeFile] | None:
    """The files of a volume; None if the kubelet does not provide its content (emptyDir, hostPath, a claim).

    Raises MissingSourceError.
    """
    if projected := volume.get("projected"):
        parts, default_mode = projected.get("sources") or [], projected.get("defaultMode")
    else:
        parts = [volume]
        default_mode = next(
            (volume[kind].get("defaultMode") for kind in volume if isinstance(volume[kind], dict)), None
        )
    if any(kind in volume for kind in _WRITTEN_BY_PODS):
        return None
    mode = DEFAULT_MODE if default_mode is None else int(default_mode)

    def field(path: str) -> str:
        return field_value(pod, path, pod_ip=pod_ip, host_ip=host_ip)

    files: dict[str, VolumeFile] = {}
    for part in parts:
        for file in _part_files(part, sources, field, mode):
            files[file.path] = file
    return list(files.values())


def write_volume(directory: Path, files: Sequence[VolumeFile]) -> bool:
    """Replace the content of `directory` by these files atomically; False if it is the same already.

    As a kubelet does: the files are in a directory of their own, `..data` points to it and is swapped in one step, and
    the visible names are links through `..data`.
    """
    for file in files:
        path = PurePosixPath(file.path)
        if path.is_absolute() or ".." in path.parts or not path.parts or path.parts[0].startswith(".."):
            raise MissingSourceError(f"{file.path!r} is not a path inside a volume")
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    current = directory / _CURRENT
    if current.is_symlink() and _holds(current.resolve(), files):
        return False
    fresh = Path(tempfile.mkdtemp(prefix="..", dir=directory))
    fresh.chmod(0o755)
    for file in files:
        _write(fresh / file.path, file)
    outdated = current.resolve() if current.is_symlink() else None
    link = directory / "..data_new"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    link.rename(current)
    _link_names(directory, {PurePosixPath(file.path).parts[0] for file in files})
    if outdated is not None:
        shutil.rmtree(outdated)
    return True


def mounts_of(container: Object, pod: Object, volumes_directory: Path, read_only: Collection[str] = ()) -> list[Mount]:
    """The mount points of the container's volumes, parents before what is below them.

    `read_only` names the volumes that are so whatever the container says.
    """
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
    mounts = []
    for wish in container.get("volumeMounts") or []:
        volume = volumes[wish["name"]]
        host_path = volume.get("hostPath")
        source = Path(host_path["path"]) if host_path else volumes_directory / wish["name"]
        if wish.get("subPath"):
            source /= wish["subPath"]
        from_api = not any(kind in volume for kind in _WRITTEN_BY_PODS)
        protected = bool(wish.get("readOnly")) or from_api or wish["name"] in read_only
        mounts.append(Mount(source, wish["mountPath"].rstrip("/") or "/", protected))
    return sorted(mounts, key=lambda mount: mount.target.count("/"))


def _part_files(part: Object, sources: Sources, field: Callable[[str], str], mode: int) -> list[VolumeFile]:
    if token := part.get("serviceAccountToken"):
        # Its holder is the service account: no other user of the machine may read it.
        return [VolumeFile(token["path"], sources.tokens[token_wish(token)].encode(), 0o600)]
    if (downward := part.get("downwardAPI")) is not None:
        files = []
        for item in downward.get("items") or []:
            if "fieldRef" not in item:
                raise MissingSourceError(f"downwardAPI item {item['path']}: only fieldRef is supported")
            data = field(item["fieldRef"]["fieldPath"]).encode()
            files.append(VolumeFile(item["path"], data, int(item.get("mode") or mode)))
        return files
    if (secret := part.get("secret")) is not None:
        name = secret.get("secretName") or secret["name"]
        data_of = sources.secret_data(name, optional=bool(secret.get("optional")))
        return _selected(f"secret {name}", secret, data_of, mode)
    if (config_map := part.get("configMap")) is not None:
        name = config_map["name"]
        data_of = sources.config_map_data(name, optional=bool(config_map.get("optional")))
        return _selected(f"configmap {name}", config_map, data_of, mode)
    raise MissingSourceError(f"a volume of {', '.join(part)} is not supported")


def _selected(what: str, source: Object, data: dict[str, bytes] | None, mode: int) -> list[VolumeFile]:
    """The keys that `items` selects (all of them by default), at its paths."""
    if data is None:
        return []
    items = source.get("items")
    if items is None:
        return [VolumeFile(key, value, mode) for key, value in data.items()]
    files = []
    for item in items:
        if item["key"] in data:
            files.append(VolumeFile(item["path"], data[item["key"]], int(item.get("mode") or mode)))
        elif not source.get("optional"):
            raise MissingSourceError(f"{what} has no key {item['key']}")
    return files


def _holds(directory: Path, files: Sequence[VolumeFile]) -> bool:
    present = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    if present != {file.path for file in files}:
        return False
    return all(
        (directory / file.path).read_bytes() == file.data
        and (directory / file.path).stat().st_mode & 0o777 == file.mode & 0o777
        for file in files
    )


def _write(path: Path, file: VolumeFile) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(file.data)
        os.fchmod(out.fileno(), file.mode & 0o777)


def _link_names(directory: Path, names: set[str]) -> None:
    for entry in directory.iterdir():
        if not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()
    for name in names:
        link = directory / name
        if not link.is_symlink():
            link.symlink_to(f"{_CURRENT}/{name}")

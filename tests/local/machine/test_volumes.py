"""The content of volumes, and how it is written."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from local.machine.placing import LOG_ROTATE_BYTES, rotate, without_mounts
from local.machine.processes import Command
from local.machine.sources import MissingSourceError, Sources, TokenWish
from local.machine.volumes import Mount, VolumeFile, mounts_of, unsupported_volume, volume_files, write_volume

POD: dict[str, Any] = {"metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": "w"}}, "spec": {}}
SOURCES = Sources(
    secrets={"s": {"data": {"a": base64.b64encode(b"1").decode(), "b": base64.b64encode(b"2").decode()}}},
    config_maps={"m": {"data": {"x": "y"}}},
    tokens={TokenWish(None, 600): "the-token"},
)


def files_of(volume: dict[str, Any]) -> dict[str, tuple[bytes, int]] | None:
    files = volume_files({"name": "v", **volume}, POD, SOURCES, pod_ip="10.0.0.2", host_ip="10.0.0.3")
    return None if files is None else {file.path: (file.data, file.mode) for file in files}


def test_a_secret_volume_holds_its_keys_with_the_declared_mode() -> None:
    assert files_of({"secret": {"secretName": "s", "defaultMode": 0o400}}) == {"a": (b"1", 0o400), "b": (b"2", 0o400)}


def test_items_pick_keys_and_give_them_paths_and_modes() -> None:
    items = [{"key": "b", "path": "dir/file", "mode": 0o440}]
    assert files_of({"secret": {"secretName": "s", "items": items}}) == {"dir/file": (b"2", 0o440)}


def test_a_missing_volume_source_is_an_error_unless_it_is_optional() -> None:
    with pytest.raises(MissingSourceError, match='configmap "none" not found'):
        files_of({"configMap": {"name": "none"}})
    assert files_of({"configMap": {"name": "none", "optional": True}}) == {}
    with pytest.raises(MissingSourceError, match="no key z"):
        files_of({"configMap": {"name": "m", "items": [{"key": "z", "path": "z"}]}})


def test_an_unsupported_volume_kind_is_named() -> None:
    assert unsupported_volume({"name": "v", "emptyDir": {}}) is None
    assert "nfs" in str(unsupported_volume({"name": "v", "nfs": {"server": "s", "path": "/"}}))


def test_a_volume_changes_atomically_and_drops_removed_files(tmp_path: Path) -> None:
    volume = tmp_path / "v"
    assert write_volume(volume, [VolumeFile("a", b"1", 0o644), VolumeFile("d/b", b"2", 0o400)])
    before = (volume / "..data").resolve()

    assert write_volume(volume, [VolumeFile("a", b"3", 0o644)])

    assert (volume / "a").read_bytes() == b"3"
    assert sorted(p.name for p in volume.iterdir() if not p.name.startswith("..")) == ["a"]
    assert not before.exists()


def test_an_unchanged_volume_is_not_rewritten(tmp_path: Path) -> None:
    files = [VolumeFile("a", b"1", 0o600)]
    write_volume(tmp_path / "v", files)
    before = (tmp_path / "v" / "..data").readlink()

    assert not write_volume(tmp_path / "v", files)

    assert (tmp_path / "v" / "..data").readlink() == before
    assert (tmp_path / "v" / "a").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "..data", ""])
def test_a_path_outside_the_volume_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(MissingSourceError):
        write_volume(tmp_path / "v", [VolumeFile(path, b"", 0o644)])


def test_the_content_of_a_file_is_in_no_representation() -> None:
    assert "secret" not in repr(VolumeFile("a", b"secret", 0o600))


def test_mounts_are_ordered_parents_first_and_api_volumes_are_read_only() -> None:
    pod = {"spec": {"volumes": [{"name": "s", "secret": {}}, {"name": "e", "emptyDir": {}}]}}
    wishes = [{"name": "s", "mountPath": "/data/s/"}, {"name": "e", "mountPath": "/data", "subPath": "x"}]

    mounts = mounts_of({"name": "c", "volumeMounts": wishes}, pod, Path("/v"))

    assert [(str(m.source), m.target, m.read_only) for m in mounts] == [
        ("/v/e/x", "/data", False),
        ("/v/s", "/data/s", True),
    ]


def test_a_claimed_volume_is_writable_unless_it_or_the_container_is_read_only() -> None:
    pod = {"spec": {"volumes": [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in "abc"]}}
    wishes = [{"name": n, "mountPath": f"/{n}", "readOnly": n == "b"} for n in "abc"]

    mounts = mounts_of({"name": "c", "volumeMounts": wishes}, pod, Path("/v"), read_only={"c"})

    assert [(str(m.source), m.read_only) for m in mounts] == [("/v/a", False), ("/v/b", True), ("/v/c", True)]


def test_without_mounts_paths_are_rewritten_and_the_service_account_directory_is_set() -> None:
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    mounts = [Mount(Path("/v/conf"), "/etc/cloud", True), Mount(Path("/v/token"), account, True)]
    command = Command(["run", "--cloud-config=/etc/cloud/c.yaml"], {"DIR": "/etc/cloud"}, None, Path("log"), mounts)

    rewritten = without_mounts(command, mounts)

    assert rewritten.argv == ["run", "--cloud-config=/v/conf/c.yaml"]
    assert rewritten.env == {"DIR": "/v/conf", "KUBERNETES_SERVICE_ACCOUNT_DIR": "/v/token"}
    assert rewritten.mounts == ()


def test_a_large_log_is_rotated_while_its_writer_continues(tmp_path: Path) -> None:
    log = tmp_path / "c.log"
    with log.open("ab") as writer:
        writer.write(b"x" * (LOG_ROTATE_BYTES + 1))
        writer.flush()
        rotate(log)
        writer.write(b"after")

    assert log.read_bytes() == b"after"
    assert (tmp_path / "c.log.1").stat().st_size == LOG_ROTATE_BYTES + 1


def test_a_small_log_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "c.log"
    log.write_text("small")
    rotate(log)
    assert log.read_text() == "small"
    assert list(tmp_path.iterdir()) == [log]

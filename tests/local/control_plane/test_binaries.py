"""Binaries are taken from where their version matches, and a cache never serves another pin's."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.control_plane import binaries
from local.control_plane.components import API_SERVER, BINARIES, ETCD
from local.errors import BuildError
from local.go import compiler, modules

VERSIONS = {
    ETCD: "etcd Version: 3.7.3\nGit SHA: none",
    **{name: "Kubernetes v1.37.2" for name in BINARIES if name != ETCD},
}


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No binary anywhere, and a build fails."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(binaries, "TOOLS", tools(tmp_path / "tools"))


@pytest.mark.integration
def test_the_users_assets_are_used_when_their_version_matches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assets = offer(tmp_path / "assets", VERSIONS)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))

    found = binaries.ensure(pytest.fail)

    assert {name: found.path(name) for name in BINARIES} == {name: assets / name for name in BINARIES}


@pytest.mark.integration
def test_binaries_on_path_are_used_when_their_version_matches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(offer(tmp_path / "bin", VERSIONS)))

    assert binaries.ensure(pytest.fail).path(ETCD) == tmp_path / "bin" / ETCD


@pytest.mark.integration
@pytest.mark.parametrize(
    "other", ["Kubernetes v1.37.20", "Kubernetes v1.37.1", "Kubernetes v11.37.2", "", "v1.37.2-rc.1"]
)
def test_the_cache_is_used_instead_of_another_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, other: str
) -> None:
    cached = offer(modules.cache_directory() / "control-plane" / binaries.cache_key(), VERSIONS)
    assets = offer(tmp_path / "assets", VERSIONS | {API_SERVER: other})
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))

    found = binaries.ensure(pytest.fail)

    assert found.path(API_SERVER) == cached / API_SERVER
    assert found.path(ETCD) == assets / ETCD


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    with pytest.raises(BuildError, match="set XDG_CACHE_HOME to another folder"):
        binaries.ensure(pytest.fail)


def test_the_cache_is_keyed_by_the_modules(tmp_path: Path) -> None:
    before = binaries.cache_key()
    (tmp_path / "tools" / "go.sum").write_text("another sum")

    assert binaries.cache_key() != before
    assert len(before) == 16


@pytest.mark.integration
def test_a_failed_build_leaves_nothing_and_reports_the_compilers_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", f"{fake_go(tmp_path / 'go', 'echo no space left on device >&2; exit 1')}:/usr/bin:/bin")

    with pytest.raises(BuildError, match=r"etcd v3\.7\.3 failed:\nno space left on device"):
        binaries.ensure(lambda _: None)

    cache = modules.cache_directory() / "control-plane" / binaries.cache_key()
    assert [path.name for path in cache.iterdir()] == ["lock"]


@pytest.mark.integration
def test_missing_binaries_are_built_once_and_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    record_arguments = (
        f'echo "$@" >> {tmp_path / "calls"}; while [ "$1" != -o ]; do shift; done; echo built > "$2"; chmod +x "$2"'
    )
    monkeypatch.setenv("PATH", f"{fake_go(tmp_path / 'go', record_arguments)}:/usr/bin:/bin")
    reported: list[str] = []

    first = binaries.ensure(reported.append)
    second = binaries.ensure(pytest.fail)

    assert first == second
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[-1] for call in calls] == list(binaries.PACKAGES.values())
    assert "-X k8s.io/component-base/version.gitVersion=v1.37.2" in calls[1]
    assert any("kubernetes v1.37.2: built in" in line for line in reported)
    assert {first.path(name).name for name in BINARIES} == set(BINARIES)
    assert len({first.path(name).resolve() for name in BINARIES}) == len(binaries.PACKAGES)


@pytest.mark.integration
def test_an_interrupted_builds_finished_binaries_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cached = offer(modules.cache_directory() / "control-plane" / binaries.cache_key(), {ETCD: VERSIONS[ETCD]})
    monkeypatch.setenv("PATH", f"{fake_go(tmp_path / 'go', 'exit 1')}:/usr/bin:/bin")

    with pytest.raises(BuildError, match="go build of kubernetes"):
        binaries.ensure(lambda _: None)

    assert (cached / ETCD).exists()


@pytest.mark.integration
@pytest.mark.parametrize(
    "version, fits", [("go1.26.0", True), ("go1.27rc1", True), ("go1.25.9", False), ("devel", False)]
)
def test_an_old_go_compiler_is_not_used(tmp_path: Path, version: str, fits: bool) -> None:
    go = fake_go(tmp_path / "go", "", version) / "go"

    found = compiler.go_version(go)

    assert (found is not None and found >= compiler.required_go(tmp_path / "tools" / "go.mod")) is fits


def test_the_pinned_versions_of_this_checkout_are_read() -> None:
    assert compiler.pinned_go(Path(__file__).parents[3] / "tools")


def tools(directory: Path) -> Path:
    """A folder like tools/ of the checkout."""
    (directory / "control-plane").mkdir(parents=True)
    (directory / "go.mod").write_text(
        "module a\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.37.2\n"
        "\tgo.etcd.io/etcd/server/v3 v3.7.3 // indirect\n)\n"
    )
    (directory / "go.sum").write_text("sum")
    (directory / "control-plane" / "main.go").write_text("package main")
    return directory


def offer(directory: Path, versions: dict[str, str]) -> Path:
    """A folder of programs that only print their version."""
    directory.mkdir(parents=True)
    for name, text in versions.items():
        script(directory / name, f"printf '%s\\n' '{text}'")
    return directory


def fake_go(directory: Path, build_script: str, version: str = "go1.26.8") -> Path:
    directory.mkdir()
    script(
        directory / "go",
        f'if [ "$1" = version ]; then echo "go version {version} linux/amd64"; exit; fi\n{build_script}',
    )
    return directory


def script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)

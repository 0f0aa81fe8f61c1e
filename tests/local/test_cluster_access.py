"""The stack's kubeconfig, kubectl and logs on the command line, without a cluster."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from urllib3.exceptions import ProtocolError

from cloud_controller.kube import PODS, Kube
from local import __main__ as command_line
from local import cluster_access
from local.cluster_access import Request, run
from local.errors import SiteError
from local.state_folder import StateFolder
from tests.fake_kubernetes import FakeKubernetes


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    """A site with the clusters c-1 and c-2, the second of EKS's kind: people know it by its name `prod`."""
    folder = StateFolder(tmp_path / "state")
    for each, name in (("c-1", "local"), ("c-2", "prod")):
        folder.cluster(each).mkdir(parents=True)
        kubeconfig = {"clusters": [{"name": name}], "id": each}
        (folder.cluster(each) / "admin.kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    folder.stack("mine").mkdir(parents=True)
    return folder


def written(folder: StateFolder) -> dict[str, Any]:
    return dict(yaml.safe_load((folder.stack("mine") / "kubeconfig").read_text()))


@pytest.mark.parametrize("cluster_id, folder_name", [("c-1", "c-1"), ("prod", "c-2")])
def test_the_kubeconfig_is_of_the_stacks_own_cluster(folder: StateFolder, cluster_id: str, folder_name: str) -> None:
    run(Request("kubeconfig"), folder, folder.stack("mine"), cluster_id)

    assert written(folder)["id"] == folder_name


@pytest.mark.parametrize("cluster_id", [None, "c-gone"])
def test_a_stack_without_a_local_cluster_is_an_error_that_names_it(folder: StateFolder, cluster_id: str | None) -> None:
    with pytest.raises(SiteError, match="stack 'mine' has no cluster on this machine"):
        run(Request("kubeconfig"), folder, folder.stack("mine"), cluster_id)


def test_a_missing_kubectl_is_an_error_with_its_sources(folder: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)

    with pytest.raises(SiteError, match=r"kubectl is not on PATH: install your distribution's package"):
        run(Request("kubectl"), folder, folder.stack("mine"), "c-1")


def kubectl_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """A kubectl that is this script, the first on PATH."""
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(script)
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(kubectl.parent), prepend=":")
    return kubectl


@pytest.mark.integration
def test_kubectl_gets_the_arguments_after_the_dashes_and_its_exit_code_is_returned(
    folder: StateFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl_on_path(tmp_path, monkeypatch, f'#!/bin/sh\necho "$KUBECONFIG $*" > {tmp_path}/called\nexit 7\n')
    options, _ = command_line._parse(["kubectl", "--stack", "mine", "--", "get", "pods", "-A"])

    code = run(Request("kubectl", words=options.words), folder, folder.stack("mine"), "c-1")

    assert code == 7
    assert (tmp_path / "called").read_text() == f"{folder.stack('mine')}/kubeconfig get pods -A\n"


@pytest.mark.integration
def test_a_kubectl_that_calls_this_command_does_not_find_itself(
    folder: StateFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"""#!{sys.executable}
import pathlib, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from local.cluster_access import Request, run
from local.errors import SiteError
from local.state_folder import StateFolder
calls = pathlib.Path({str(tmp_path / "calls")!r})
with calls.open("a") as file:
    file.write("x")
if len(calls.read_text()) > 3:
    sys.exit(9)
folder = StateFolder(pathlib.Path({str(folder.root)!r}))
try:
    sys.exit(run(Request("kubectl", words=sys.argv[1:]), folder, folder.stack("mine"), "c-1"))
except SiteError as error:
    calls.write_text(str(error))
    sys.exit(7)
"""
    kubectl = kubectl_on_path(tmp_path, monkeypatch, script)

    assert run(Request("kubectl", words=["get", "pods"]), folder, folder.stack("mine"), "c-1") == 7

    said = (tmp_path / "calls").read_text()
    assert said == f"{kubectl} runs this command itself; put the folder of the real kubectl before its own on PATH"


def test_arguments_after_the_dashes_are_allowed_only_with_kubectl(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line._parse(["status", "--", "get"])

    assert "arguments after `--` are only for `kubectl`" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["get", "-A"])
def test_kubectls_arguments_before_the_dashes_are_told_their_place(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command_line._parse(["kubectl", word])

    assert f"kubectl's own arguments follow `--`: kubectl -- {word}" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--pod=x", "--follow"])
def test_log_options_are_allowed_only_with_logs(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["up", option])

    assert "--pod and --follow are only for `logs`" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------------- logs


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths whose logs were read."""
    paths: list[str] = []
    api = FakeKubernetes()
    for space, name in (("default", "web-1"), ("default", "twin"), ("kube-system", "twin")):
        api.put(PODS, {"metadata": {"namespace": space, "name": name}})
    monkeypatch.setattr(Kube, "from_file", lambda _: api)

    def log(_: Path, path: str, *, follow: bool) -> list[bytes]:
        assert not follow
        paths.append(path)
        return []

    monkeypatch.setattr(cluster_access, "_log", log)
    return paths


@pytest.mark.parametrize(
    "pod, path", [("default/web-1", "default/pods/web-1"), ("web-1", "default/pods/web-1"),
                  ("kube-system/twin", "kube-system/pods/twin")]
)  # fmt: skip
def test_a_pod_is_selected_with_its_namespace_or_by_a_unique_name(
    folder: StateFolder, asked: list[str], pod: str, path: str
) -> None:
    run(Request("logs", pod=pod), folder, folder.stack("mine"), "c-1")

    assert asked == [f"/api/v1/namespaces/{path}/log"]


@pytest.mark.usefixtures("asked")
def test_an_interrupted_log_is_a_clear_error(folder: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Iterator[bytes]:
        yield b"one line"
        raise ProtocolError("Connection broken")

    monkeypatch.setattr(cluster_access, "_log", broken)
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=io.BytesIO()))

    with pytest.raises(SiteError, match="could not read the log of web-1 to its end: Connection broken"):
        run(Request("logs", pod="web-1"), folder, folder.stack("mine"), "c-1")


@pytest.mark.parametrize(
    "pod, problem",
    [
        ("", "POD is missing; pods:\n  default/twin\n  default/web-1\n  kube-system/twin"),
        ("web", "POD is 'web': no such pod; pods:\n  default/twin\n  default/web-1\n  kube-system/twin"),
        ("twin", "POD is 'twin': 2 pods have this name; pods:\n  default/twin\n  kube-system/twin"),
    ],
)
def test_an_ambiguous_pod_is_an_error_that_lists_the_candidates(
    folder: StateFolder, asked: list[str], pod: str, problem: str
) -> None:
    with pytest.raises(SiteError) as error:
        run(Request("logs", pod=pod), folder, folder.stack("mine"), "c-1")

    assert str(error.value) == problem
    assert asked == []

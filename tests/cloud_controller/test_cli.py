"""The command line: one clear line for what is wrong, and the right exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloud_controller.cli import main

KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: not-to-be-shown}}]
"""
CLOUD_CONFIG = "[Global]\nendpoint = http://127.0.0.1:1\ntoken = not-to-be-shown\ncluster-id = c-0123456789ab\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    (tmp_path / "cloud.conf").write_text(CLOUD_CONFIG)
    return tmp_path


def command(files: Path, *more: str, kubeconfig: str = "kubeconfig", config: str = "cloud.conf") -> list[str]:
    return [
        "plan",
        "--cloud=mycloud",
        f"--cloud-config={files / config}",
        f"--kubeconfig={files / kubeconfig}",
        "--log-level=error",
        *more,
    ]


def failed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command which fails prints."""
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "not-to-be-shown" not in err
    (line,) = err.splitlines()
    return line


def test_an_unknown_cloud_is_told_with_the_nearest_name(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = failed(command(files, "--cloud=myclod"), capsys)

    assert line == "cloud-controller: cloud: 'myclod' is not a known cloud; did you mean 'mycloud'? (allowed: mycloud)"


def test_a_missing_cloud_config_is_told_by_its_path(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"No such file or directory: '{files}/nowhere'" in failed(command(files, config="nowhere"), capsys)


def test_a_wrong_key_of_the_cloud_config_is_told_by_its_name(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "cloud.conf").write_text("[Global]\nendpont = x\n")

    assert "endpont" in failed(command(files), capsys)


def test_a_missing_kubeconfig_is_told_by_its_path(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = failed(command(files, kubeconfig="nowhere"), capsys)

    assert f"the kubeconfig can't be read: [Errno 2] No such file or directory: '{files}/nowhere'" in line


def test_an_api_server_that_does_not_answer_is_told_by_its_address(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = failed(command(files, "--controllers=node"), capsys)

    assert "the API server https://127.0.0.1:1 can't be reached" in line
    assert "Connection refused" in line


def test_an_unknown_controller_is_told_with_the_known_ones(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = failed(command(files, "--controllers=nodes"), capsys)

    assert "'nodes' is no controller (allowed: node, node-lifecycle, service, route)" in line


def test_the_daemon_refuses_the_route_controller_without_a_cluster_range(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", *command(files)[1:]]

    assert "cluster-cidr: nothing is given" in failed(arguments, capsys)


@pytest.mark.parametrize("arguments", [[], ["plan"], ["run", "--cloud=mycloud", "--node-monitor-period=5"], ["fly"]])
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    assert "usage: cloud-controller" in capsys.readouterr().err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.count(".") == 2

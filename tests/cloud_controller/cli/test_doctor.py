"""`cloud-controller doctor`: which checks run with which options."""

from __future__ import annotations

import socket
from pathlib import Path

import orjson
import pytest

from cloud_controller.cli.commands import main
from cloud_controller.doctor.checks import ALL

NUMBERS = {check.name for check in ALL if check.needs == "scrape"}


@pytest.fixture
def nowhere(tmp_path: Path) -> list[str]:
    """Options of a cluster whose API server does not run."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: c}}]\nusers: [{name: c, user: {}}]\ncurrent-context: c\n"
    )
    return ["doctor", "--cloud=mycloud", f"--kubeconfig={kubeconfig}", "--output=json"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> set[str]:
    """The names of the checks that ran."""
    assert main([*arguments]) in (3, 4)
    report = orjson.loads(capsys.readouterr().out)
    found = {each["check"] for part in ("findings", "notChecked") for each in report[part]}
    return found | {*report["passed"]}


def test_checks_that_need_an_option_are_left_out_without_it(
    nowhere: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *nowhere) == {check.name for check in ALL} - NUMBERS


def test_checks_that_need_an_option_run_with_it(nowhere: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *nowhere, "--scrape=10ms") == {check.name for check in ALL}


def test_a_check_that_is_named_runs_without_its_option(nowhere: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *nowhere, "--only=api-errors") == {"api-errors"}


def test_findings_that_cannot_be_pushed_are_an_error_after_the_report(
    nowhere: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*nowhere, "--push-gateway=http://127.0.0.1:1"])

    out, err = capsys.readouterr()
    assert code == 1
    assert orjson.loads(out)["findings"][0]["check"] == "api-server"
    assert "cannot push the findings to the gateway" in err

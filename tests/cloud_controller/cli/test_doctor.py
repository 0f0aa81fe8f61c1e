"""`cloud-controller doctor`: its options, and what it takes from the daemon's own."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cloud_controller.cli import doctor
from cloud_controller.cli import options as cli_options
from cloud_controller.cli.commands import main
from cloud_controller.cli.parser import Parser
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.doctor.checks import ALL
from cloud_controller.doctor.findings import Check, Finding
from cloud_controller.doctor.seen import Seen

KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: not-to-be-shown}}]
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    return str(tmp_path / "kubeconfig")


def test_an_api_server_that_does_not_answer_is_the_first_finding(
    kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["doctor", "--cloud=mycloud", f"--kubeconfig={kubeconfig}", "--only=leader,api-server", "-o", "json"])

    shown = json.loads(capsys.readouterr().out)
    assert code == 4
    assert [each["check"] for each in shown["findings"]] == ["api-server"]
    assert [each["check"] for each in shown["notChecked"]] == ["leader"]


def test_without_a_cloud_config_what_needs_the_cloud_is_not_checked(
    kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["doctor", "--cloud=mycloud", f"--kubeconfig={kubeconfig}", "--only=cloud-api", "-o", "json"])

    shown = json.loads(capsys.readouterr().out)
    assert (code, shown["findings"]) == (3, [])
    assert shown["notChecked"] == [{"check": "cloud-api", "reason": "no cloud config was given: pass --cloud-config"}]


def test_a_missing_kubeconfig_is_an_error_and_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--cloud=mycloud", "--kubeconfig=/nowhere"]) == 1
    assert capsys.readouterr().err.startswith("cloud-controller: cannot read kubeconfig /nowhere")


def test_an_unknown_cloud_is_no_missing_cloud_config(kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--cloud=myclod", f"--kubeconfig={kubeconfig}"]) == 1
    assert "'myclod' is not a known cloud; did you mean 'mycloud'?" in capsys.readouterr().err


def test_an_unknown_check_is_an_error_that_names_the_nearest(
    kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--cloud=mycloud", f"--kubeconfig={kubeconfig}", "--only=leeder"]) == 1
    assert "'leeder' is not a check; did you mean leader?" in capsys.readouterr().err


def test_the_daemons_own_arguments_decide_what_its_controllers_do() -> None:
    given = doctor.with_arguments(
        ["run", "--cloud=mycloud", "--controllers=node,route", "--cluster-cidr=10.1.0.0/16", "--cloud-config=/etc/c"],
        options("--cloud=mycloud", "--cloud-config=mine", "--cluster-cidr=10.2.0.0/16"),
    )

    assert (given.controllers, given.cluster_cidr, given.cloud_config) == (["node", "route"], "10.1.0.0/16", "mine")


def test_an_argument_may_be_two_words() -> None:
    given = doctor.with_arguments(
        ["run", "--cluster-cidr", "10.1.0.0/16", "--configure-cloud-routes", "false", "--cloud", "mycloud"],
        options("--cloud=mycloud"),
    )

    assert (given.cluster_cidr, given.configure_cloud_routes) == ("10.1.0.0/16", False)


def test_a_container_without_arguments_leaves_doctors_own_options() -> None:
    assert doctor.with_arguments([], options("--cloud=mycloud", "--cluster-cidr=10.2.0.0/16")).cluster_cidr == (
        "10.2.0.0/16"
    )


def test_arguments_of_other_managers_are_read_over() -> None:
    command = [
        "/bin/aws-cloud-controller-manager",
        "--v=2",
        "--use-service-account-credentials=true",
        "--controllers=*",
    ]

    assert doctor.with_arguments(command, options("--cloud=aws")).controllers == ["*"]


def test_an_invalid_argument_of_the_daemon_is_named() -> None:
    with pytest.raises(InvalidConfiguration, match=r"arguments of the CCM's container: .*--backend-nodes"):
        doctor.with_arguments(["--backend-nodes=none"], options("--cloud=mycloud"))


def options(*arguments: str) -> argparse.Namespace:
    parser = Parser()
    cli_options.add_common(parser)
    doctor.add(parser)
    given: argparse.Namespace = parser.parse_args(arguments)
    return given


# ------------------------------------------------------------------------------------------------ checks with options

NUMBERS = {check.name for check in ALL if check.needs == "scrape"}


def ran(kubeconfig: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> set[str]:
    """The names of the checks that ran, on a cluster whose API server does not answer."""
    assert main(["doctor", "--cloud=mycloud", f"--kubeconfig={kubeconfig}", "--output=json", *arguments]) in (3, 4)
    report = json.loads(capsys.readouterr().out)
    found = {each["check"] for part in ("findings", "notChecked") for each in report[part]}
    return found | {*report["passed"]}


def test_checks_that_need_an_option_are_left_out_without_it(
    kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(kubeconfig, capsys) == {check.name for check in ALL} - NUMBERS


def test_checks_that_need_an_option_run_with_it(kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(kubeconfig, capsys, "--scrape=10ms") == {check.name for check in ALL}


def test_a_check_that_is_named_runs_without_its_option(kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(kubeconfig, capsys, "--only=api-errors") == {"api-errors"}


# ------------------------------------------------------------------------------------------------------------ --watch


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs `doctor --watch` on a cluster in which each round finds one thing; returns what it printed."""

    def run(*rounds: str, output: str) -> str:
        left = [*rounds]

        def found(_: Seen) -> tuple[Finding]:
            return (Finding(what=left.pop(0), remedy="mend it"),)

        def pause(_: float) -> None:
            if not left:
                raise KeyboardInterrupt

        only = Check(name="only", holds="", why="", lines=(), page="", run=found)
        monkeypatch.setattr(doctor, "ALL", (only,))
        monkeypatch.setattr(doctor, "time", SimpleNamespace(sleep=pause))
        assert main(["doctor", "--cloud=mycloud", "--watch", f"--output={output}"]) == 4
        return capsys.readouterr().out

    return run


def test_a_watch_shows_a_report_only_when_it_differs_from_the_one_before(watched: Callable[..., str]) -> None:
    shown = watched("no leader", "no leader", "no routes", "no leader", output="text")

    assert re.findall(r"\[critical\] (.*)", shown) == ["no leader", "no routes", "no leader"]


def test_each_report_of_a_watch_is_one_line_of_json(watched: Callable[..., str]) -> None:
    lines = watched("no leader", "no routes", output="json").splitlines()

    assert [json.loads(line)["findings"][0]["what"] for line in lines] == ["no leader", "no routes"]

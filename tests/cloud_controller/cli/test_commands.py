"""The command line: one clear line for what is wrong, and the right exit code."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cloud_controller.binding import UNBOUND
from cloud_controller.cli import commands as cli
from cloud_controller.cli import options as cli_options
from cloud_controller.cli.commands import main
from cloud_controller.controllers.service import controller as service
from cloud_controller.controllers.service.address_changes import AddressChanges
from cloud_controller.converge import Refused
from cloud_controller.kube_errors import TlsError
from cloud_controller.plan import Action, ActionKind, Attention, FieldChange, Plan

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


def test_an_unknown_cloud_is_an_error_with_the_nearest_name(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = failed(command(files, "--cloud=myclod"), capsys)

    told = "'myclod' is not a known cloud; did you mean 'mycloud'? (allowed: alicloud, aws, mycloud, openstack)"
    assert line == f"cloud-controller: cloud: {told}"


def test_a_missing_cloud_config_is_an_error_that_names_its_path(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = failed(command(files, config="nowhere"), capsys)

    assert line == f"cloud-controller: {files}/nowhere: No such file or directory"


def test_an_unset_cloud_config_is_an_error_that_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    line = failed(["plan", "--cloud=mycloud"], capsys)

    why = "not set, but cloud mycloud requires it: cloud config: [Global] endpoint: missing"
    assert line == f"cloud-controller: cloud-config: {why}"


def test_a_missing_kubeconfig_is_an_error_that_names_its_path(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = failed(command(files, kubeconfig="nowhere"), capsys)

    assert f"cannot read kubeconfig {files}/nowhere: No such file or directory" in line


def test_an_unreachable_api_server_is_an_error_that_names_its_address(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = failed(command(files, "--controllers=node"), capsys)

    assert "cannot reach API server https://127.0.0.1:1" in line
    assert "Connection refused" in line


def test_a_daemon_waits_for_an_untrusted_api_server_without_asking_it_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client itself repeats no handshake that failed."""
    asked: list[None] = []

    def version() -> dict[str, str]:
        asked.append(None)
        raise TlsError("its certificate is another's")

    monkeypatch.setattr(cli, "_START_TIMEOUT", 0.1)

    with pytest.raises(TlsError):
        cli._wait_for(cast("Any", SimpleNamespace(version=version)))

    assert len(asked) == 2


def test_the_route_controller_requires_cluster_cidr(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", *command(files)[1:]]

    assert "cluster-cidr: missing" in failed(arguments, capsys)


def test_a_plan_of_routes_without_cluster_cidr_is_rejected_before_any_request(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "cluster-cidr: missing; controller route requires it" in failed(command(files), capsys)


@pytest.mark.parametrize(
    ("endpoint", "token", "told"),
    [
        ("http://[::1", "not-to-be-shown", "endpoint: not a valid URL"),
        ("http://127.0.0.1:1", "not-to-be-shown\n  more", "line 4: unknown key in [Global]"),
        ("http://127.0.0.1:1", "not-to-be-shown more", "token: not valid in an HTTP header"),
        ("http://127.0.0.1:1", "not-to-be-shown…", "token: not valid in an HTTP header"),
    ],
)
def test_an_unusable_cloud_config_is_one_error_line_without_secrets(
    files: Path, endpoint: str, token: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"[Global]\nendpoint = {endpoint}\ntoken = {token}\ncluster-id = c-0123456789ab\n"
    (files / "cloud.conf").write_text(text)

    assert told in failed(command(files), capsys)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Action], list[service.ServiceOptions]]:
    """The actions that the service controller plans, to be filled, and the options that it was given."""
    actions: list[Action] = []
    given: list[service.ServiceOptions] = []

    def plan(_: object, options: service.ServiceOptions) -> Plan:
        given.append(options)
        return Plan.of(actions)

    nothing = SimpleNamespace(
        cluster_id="c-1", services=[], load_balancers=[], classes=frozenset(), builder=None, binding=UNBOUND
    )
    monkeypatch.setattr(service, "observe", lambda *_: nothing)
    monkeypatch.setattr(service, "evidence", lambda _: None)
    monkeypatch.setattr(cli_options, "cluster_uid", lambda _: "")  # Without an identity, nothing is proved.
    monkeypatch.setattr(service, "plan", plan)
    return actions, given


Planned = tuple[list[Action], list[service.ServiceOptions]]


def test_a_plan_counts_backends_as_the_daemon_with_the_same_option_does(
    files: Path, planned: Planned, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--backend-nodes=ready-workers", "--address-changes=acknowledge")
    assert main(command(files, "--controllers=service", *more)) == 0

    (options,) = planned[1]
    assert (options.backend_nodes, options.address_changes) == ("ready-workers", AddressChanges.ACKNOWLEDGE)
    assert capsys.readouterr().out == "service: nothing to do\n"


def test_a_plan_ends_with_the_services_that_need_attention_and_how_a_change_is_acknowledged(
    files: Path, planned: Planned, capsys: pytest.CaptureFixture[str]
) -> None:
    line = 'cloud-controller/acknowledge-address-change: "3fa94c21d07b"'
    held = Action(
        ActionKind.REPLACE,
        "service/default/web",
        "leave load balancer lb-1 at 192.0.2.1; the address changes",
        (FieldChange("scheme", "internet-facing", "internal"),),
        reason="scheme cannot be changed in place",
        held="3fa94c21d07b",
        acknowledgement=line,
        attention=Attention.ADDRESS_CHANGE_HELD,
    )
    planned[0].append(held)

    assert main(command(files, "--controllers=service", "--detailed-exitcode")) == 4
    assert capsys.readouterr().out.splitlines() == [
        "service: 1 to replace",
        f"  +- service/default/web: {held.summary} ({held.reason}) [held; annotate {line}]",
        "       scheme: internet-facing -> internal",
        "needs attention: 1",
        "  service/default/web: address-change-held: scheme cannot be changed in place",
        f"       to let it happen once, annotate the Service: {line}",
    ]


def test_what_authors_of_services_write_cannot_hide_lines_of_a_plan(
    files: Path, planned: Planned, capsys: pytest.CaptureFixture[str]
) -> None:
    hiding = "192.0.2.1\x1b[1A\x1b[2K\r\N{RIGHT-TO-LEFT OVERRIDE}\nservice: nothing to do"
    change = FieldChange("spec.loadBalancerIP", hiding, None)
    planned[0].append(Action(ActionKind.IGNORE, "service/default/web", "ignored", (change,), reason=hiding))
    planned[0].append(replace(planned[0][0], attention=Attention.REFUSED, acknowledgement=hiding))

    assert main(command(files, "--controllers=service")) == 0

    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 1 + 2 * 2 + 3 + 1
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    "option",
    [
        "--secure-port=65536",
        "--secure-port=-1",
        "--kube-api-burst=0",
        "--kube-api-qps=-1",
        "--kube-api-qps=nan",
        "--concurrent-service-syncs=0",
        "--concurrent-node-syncs=²",
        "--bind-address=here",
    ],
)
def test_a_number_out_of_range_is_a_usage_error(files: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", *command(files)[1:], option])

    assert ended.value.code == 2
    assert f"argument {option.partition('=')[0]}: not a" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["plan"], ["run", "--cloud=mycloud", "--node-monitor-period=5"], ["fly"]])
def test_a_usage_error_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("cloud-controller") and line.endswith("--help)")


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert main(arguments) == 0
    except SystemExit as ended:  # an option of argparse's own
        assert ended.code == 0
    assert capsys.readouterr().out.count(".") == 2


def ran(files: Path, monkeypatch: pytest.MonkeyPatch, manager: object) -> int:
    """The exit code of a daemon with this manager."""
    cloud = SimpleNamespace(check_access=lambda *_, **__: None, routes=1, load_balancers=1, volumes=1)
    monkeypatch.setattr(cli_options, "cloud", lambda _: cloud)
    monkeypatch.setattr(cli, "_wait_for", lambda _: None)
    monkeypatch.setattr(cli, "stop_on_signals", threading.Event)
    monkeypatch.setattr(cli, "Manager", lambda *_: manager)
    return main(["run", *command(files, "--controllers=node")[1:]])


@pytest.mark.parametrize(("busy", "at_once"), [(True, [7]), (False, [])])
def test_a_daemon_whose_controllers_still_work_when_it_ends_does_not_wait_for_their_threads(
    files: Path, busy: bool, at_once: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)

    assert ran(files, monkeypatch, SimpleNamespace(run=lambda _: 7, busy=busy, foreign=None)) == 7

    assert ended == at_once


class Terminal:
    """Somebody who types this line."""

    def __init__(self, line: str) -> None:
        self.line = line

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self.line


@pytest.mark.parametrize(("line", "agreed"), [("yes\n", True), ("y\n", False), ("\n", False), ("", False)])
def test_only_the_full_word_yes_approves_an_apply(
    line: str, agreed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(line))

    assert cli._ask(2) is agreed
    out, err = capsys.readouterr()
    assert "Apply these 2 changes" in err
    assert out == ""


def test_an_apply_without_a_terminal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)

    with pytest.raises(Refused, match="stdin is not a terminal"):
        cli._ask(2)


def test_an_interrupted_plan_prints_one_line(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "find", interrupted)
    monkeypatch.setattr(cli_options, "cluster_uid", lambda _: "uid-here")

    assert failed(command(files, "--controllers=node"), capsys) == "cloud-controller: interrupted; nothing was changed"


@pytest.mark.integration
@pytest.mark.parametrize("output", ["text", "json"])
def test_a_closed_output_pipe_prints_no_error(files: Path, output: str) -> None:
    arguments = command(files, "--controllers=service", f"--output={output}")
    # Without an identity, nothing is proved.
    nothing = "cli.find = lambda *_: cli.Found(cli.Plan()); cli.cli_options.cluster_uid = lambda _: ''"
    program = (
        f"import sys; from cloud_controller.cli import commands as cli; {nothing}; sys.exit(cli.main({arguments!r}))"
    )
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        ended = subprocess.run([sys.executable, "-c", program], stdout=closed, stderr=subprocess.PIPE, check=False)

    assert (ended.returncode, ended.stderr) == (1, b"")


def test_a_daemon_that_finds_a_foreign_cluster_prints_the_reason_as_its_last_line(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(files, monkeypatch, SimpleNamespace(run=lambda _: 1, busy=False, foreign="why")) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "cloud-controller: why"

"""The options of `plan -f`, its outputs and its exit codes; with a cluster: `test_plan_services_control_plane`."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from cloud_controller.cli.commands import main
from cloud_controller.cli.planned_service import ATTENTION, CHANGES

SCHEME = "service.beta.kubernetes.io/dlb-scheme"


def service(name: str, scheme: str = "internet-facing") -> str:
    metadata = f"{{name: {name}, annotations: {{{SCHEME}: {scheme}}}}}"
    spec = "{type: LoadBalancer, ports: [{port: 80}]}"
    return f"---\napiVersion: v1\nkind: Service\nmetadata: {metadata}\nspec: {spec}\n"


@pytest.fixture
def against(tmp_path: Path) -> list[str]:
    """The arguments that compare `after` with `before`, which has the Service `web`."""
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
    (tmp_path / "before" / "web.yaml").write_text(service("web"))
    return ["plan", "--cloud=mycloud", "-f", str(tmp_path / "after"), "--against", str(tmp_path / "before")]


def put(tmp_path: Path, text: str) -> None:
    (tmp_path / "after" / "web.yaml").write_text(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (service("web"), 0),
        (service("web") + service("new"), CHANGES),
        ("{apiVersion: v1, kind: ConfigMap}", CHANGES),
        (service("web", "internal"), ATTENTION),
        (service("web") + service("bad", "no-such-scheme"), ATTENTION),
    ],
)
def test_the_exit_code_tells_what_would_happen_only_where_it_is_asked(
    tmp_path: Path, against: list[str], text: str, code: int
) -> None:
    put(tmp_path, text)

    assert main(against) == 0
    assert main([*against, "--detailed-exitcode"]) == code


def test_each_output_has_the_same_services(
    tmp_path: Path, against: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, service("web", "internal"))

    def output(name: str) -> str:
        assert main([*against, "-o", name]) == 0
        return capsys.readouterr().out

    assert "default/web" in output("text") and "address replaced" in output("text")
    assert "- **address replaced** `default/web`" in output("markdown")
    [found] = json.loads(output("json"))["services"]
    assert (found["outcome"], found["actions"][0]["assumed"]) == ("address replaced", True)
    [result] = json.loads(output("sarif"))["runs"][0]["results"]
    assert result["ruleId"] == "address-replaced"


def test_one_side_may_come_from_stdin(
    tmp_path: Path, against: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, service("web"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(service("old").encode())))

    assert main([*against[:-1], "-", "-o", "json"]) == 0

    counts = json.loads(capsys.readouterr().out)["counts"]
    assert counts == {"deleted": 1, "created": 1}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--against=x"], "against: requires -f"),
        (["--recursive"], "recursive: requires -f"),
        (["--force-conflicts"], "force-conflicts: requires -f"),
        (["-o=sarif"], "output: sarif requires -f (allowed: text, json)"),
        (["-f=x", "--controllers=node"], "filename: requires controller service, which is not enabled"),
        (["-f=-", "--against=-"], "against: stdin is named twice"),
        (["-f=x", "--against=y", "--force-conflicts"], "force-conflicts: conflicts with --against"),
        (["-f=/no/such/file", "--against=-"], "/no/such/file: No such file or directory"),
    ],
)
def test_contradictions_are_refused_before_anything_is_read(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--cloud=mycloud", *arguments]) == 1

    assert told in capsys.readouterr().err


def test_an_output_that_does_not_exist_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--cloud=mycloud", "-f=x", "-o=xml"])

    assert ended.value.code == 2


def test_a_config_file_cannot_name_manifests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("cloud: mycloud\nfilename: a.yaml\n")

    assert main(["plan", f"--config={tmp_path}/config.yaml"]) == 1

    assert "line 2: unknown option" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["json", "sarif"])
def test_the_name_of_a_file_need_not_be_utf_8(
    tmp_path: Path,
    against: list[str],
    output: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(tmp_path, service("web", "internal"))
    monkeypatch.chdir(tmp_path / "after")
    Path("web.yaml").rename(os.fsdecode(b"\xff.yaml"))

    assert main([*against[:3], ".", *against[4:], "-o", output]) == 0
    assert json.loads(capsys.readouterr().out)


def test_an_error_is_one_line_whatever_a_manifest_has_in_it(
    tmp_path: Path, against: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, 'apiVersion: kustomize.config.k8s.io/v1\nkind: "\\e[31m\\n::add-mask::a"\n')

    assert main(against) == 1

    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("cloud-controller: ") and line.isprintable()

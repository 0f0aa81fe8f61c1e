"""The command line: what it refuses, and reports of what the CLI wrote."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from cloud_stacks.cli import FAILED, OK, USAGE, main

PREVIEW = Path(__file__).parent / "samples" / "preview.json"
"""What Pulumi's CLI wrote (`preview --json`)."""


@pytest.mark.integration
def test_a_preview_of_the_real_cli_is_rendered_in_every_form(tmp_path: Path) -> None:
    shown = io.StringIO()

    code = main(["report", str(PREVIEW), "--out", str(tmp_path), "--key", "prod"], shown)

    assert code == OK
    assert "replace Service web at __main__.py:" in shown.getvalue()
    assert (tmp_path / "comment.md").read_text().startswith("<!-- cloud-stacks:prod -->\n## Plan\n")
    [run] = json.loads((tmp_path / "report.sarif").read_text())["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["address-change"]


def test_a_violated_mandatory_policy_in_an_event_log_fails_the_report(tmp_path: Path) -> None:
    event = {
        "policyName": "p",
        "enforcementLevel": "mandatory",
        "message": "no",
        "resourceUrn": "urn:pulumi:dev::a::b:c:D::e",
    }
    (tmp_path / "events").write_text(json.dumps({"policyEvent": event}))

    assert main(["report", str(tmp_path / "events")], io.StringIO()) == FAILED


def test_an_unknown_level_in_an_event_log_is_text_from_outside(tmp_path: Path) -> None:
    event = {"policyName": "p", "enforcementLevel": "<img>\n::stop", "message": "no", "resourceUrn": ""}
    (tmp_path / "events").write_text(json.dumps({"policyEvent": event}))
    shown = io.StringIO()

    assert main(["report", str(tmp_path / "events"), "--out", str(tmp_path / "out"), "--folder", "."], shown) == OK

    assert "- `p` (`<img> ::stop`): " in (tmp_path / "out" / "comment.md").read_text()
    assert not any(line.startswith("::") for line in shown.getvalue().splitlines())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "missing"], "missing"),
        (["diff", "--base", "no-such-branch", "--cwd", "."], "'no-such-branch' is not a commit of"),
        (["preview", "--stack", "no-such-stack"], "no stack file of no-such-stack"),
    ],
)
@pytest.mark.integration
def test_what_cannot_be_used_is_refused_in_a_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, io.StringIO()) == USAGE

    said = capsys.readouterr().err
    assert words.lower() in said.lower()
    assert said.startswith("error: ") and len(said.splitlines()) == 1


def test_a_diff_without_a_base_is_refused() -> None:
    with pytest.raises(SystemExit) as refused:
        main(["diff"])

    assert refused.value.code == USAGE

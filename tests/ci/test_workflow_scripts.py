"""The scripts in GitHub's workflows, run by Node with a GitHub that records what they ask for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node is not on PATH: GitHub's machines have it"),
]

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = Path(__file__).with_name("recordings")
REPOSITORY = {"html_url": "https://github.example/acme/clusters"}
REPO = {"owner": "acme", "repo": "clusters"}
RUN: dict[str, Any] = {
    "id": 77,
    "run_number": 5,
    "head_sha": "c0ffee",
    "head_branch": "more-nodes",
    "head_repository": {"owner": {"login": "stranger"}},
}
BOT = {"login": "github-actions[bot]"}
MARKER = "<!-- pull-request-comment.yml -->"


def run(workflow: str, number: int, answers: dict[str, Any], **environment: str | Path) -> tuple[list[Any], Any]:
    """The calls and the outputs of a workflow's script, by its number."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / workflow).read_text())["jobs"].values()
    scripts = [step["with"]["script"] for job in jobs for step in job["steps"] if "script" in step.get("with", {})]
    context = {"repo": REPO, "runId": 77, "payload": {"workflow_run": RUN, "repository": REPOSITORY}}
    done = subprocess.run(
        [
            "node",
            Path(__file__).with_name("run_script.mjs"),
            json.dumps({"script": scripts[number], "context": context, "answers": answers}),
        ],
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["calls"], found["outputs"]


def find(pulls: list[Any], artifacts: list[Any]) -> tuple[list[Any], Any]:
    answers = {"pulls.list": pulls, "actions.listWorkflowRunArtifacts": {"artifacts": artifacts}}
    return run("pull-request-comment.yml", 0, answers)


def comment(folder: Path, text: str, comments: list[Any] | None = None) -> tuple[str, dict[str, Any]]:
    """The call that writes the comment."""
    (folder / "comment.md").write_text(text)
    answers = {"issues.listComments": comments or []}
    calls, _ = run("pull-request-comment.yml", 1, answers, REPORT=folder, NUMBER="12")
    assert [name for name, _ in calls[:-1]] == ["issues.listComments"]
    name, parameters = calls[-1]
    return name, parameters


def drift(folder: Path, events: str, open_issues: list[Any]) -> list[Any]:
    """The calls that change issues, for a stack `prod` with this refresh, beside one whose refresh failed."""
    (folder / "drift-prod.json").write_text(events)
    answers = {"issues.listForRepo": open_issues}
    calls, _ = run("drift.yml", 0, answers, STACKS='["staging", "prod"]', DRIFT=folder)
    assert calls[0][0] == "issues.listForRepo"
    return calls[1:]


def recorded(name: str) -> str:
    """The event log of a `refresh --preview-only --run-program`, by CLI 3.274.1: results only."""
    return (RECORDINGS / f"refresh-{name}.jsonl").read_text()


def test_the_pull_request_is_found_by_its_commit() -> None:
    calls, outputs = find(
        [{"number": 11, "head": {"sha": "old"}}, {"number": 12, "head": {"sha": "c0ffee"}}],
        [{"id": 99, "size_in_bytes": 4000}],
    )

    assert calls[0] == ["pulls.list", {**REPO, "state": "open", "head": "stranger:more-nodes"}]
    assert outputs == {"number": 12, "artifact": 99}


def test_a_run_whose_fork_is_gone_gives_no_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RUN, "head_repository", None)

    _, outputs = find([], [])

    assert outputs == {"notice": "No open pull request is at c0ffee: there is nothing to comment on."}


def test_a_run_of_a_commit_that_was_replaced_meanwhile_gives_no_comment() -> None:
    _, outputs = find([{"number": 12, "head": {"sha": "newer"}}], [{"id": 99, "size_in_bytes": 4000}])

    assert set(outputs) == {"notice"}


@pytest.mark.parametrize("artifacts", [[], [{"id": 99, "size_in_bytes": 30_000_000}]])
def test_a_run_without_a_report_or_with_a_huge_one_gives_no_comment(artifacts: list[Any]) -> None:
    _, outputs = find([{"number": 12, "head": {"sha": "c0ffee"}}], artifacts)

    assert outputs == {"notice": "The run has no report below 20 MB."}


def test_the_first_report_becomes_a_comment_that_says_where_it_comes_from(tmp_path: Path) -> None:
    name, parameters = comment(tmp_path, "## Stacks\n\nNothing changes.")

    assert name == "issues.createComment"
    assert parameters["issue_number"] == 12
    marker, source, empty, *text = parameters["body"].splitlines()
    assert (marker, empty) == (MARKER, "")
    assert "without secrets and without state ([run 5](https://github.example/acme/clusters/actions/runs/77))" in source
    assert text == ["## Stacks", "", "Nothing changes."]


def test_a_later_report_replaces_the_comment_of_the_workflow_and_of_nobody_else(tmp_path: Path) -> None:
    comments = [
        {"id": 1, "user": {"login": "stranger"}, "body": f"{MARKER} mine"},
        {"id": 2, "user": BOT, "body": "another workflow's"},
        {"id": 3, "user": BOT, "body": f"{MARKER}\nan earlier report"},
    ]

    name, parameters = comment(tmp_path, "now", comments)

    assert (name, parameters["comment_id"]) == ("issues.updateComment", 3)


@pytest.mark.parametrize("mention", ["@team", "&#64;team", "&#x0040;team", "&commat;team", "(@team)", "_@team_"])
def test_a_report_notifies_nobody(tmp_path: Path, mention: str) -> None:
    _, parameters = comment(tmp_path, f"{mention} image@sha256:abc")

    assert "@team" not in parameters["body"]
    assert "@\u2060team" in parameters["body"]
    assert "image@sha256:abc" in parameters["body"]


def test_a_report_notifies_nobody_whose_name_is_written_in_character_references(tmp_path: Path) -> None:
    _, parameters = comment(tmp_path, "@&#116;eam")

    assert "@\u2060&#116;eam" in parameters["body"]


def test_a_report_that_is_longer_than_a_comment_may_be_is_named_instead(tmp_path: Path) -> None:
    _, parameters = comment(tmp_path, "x" * 65_001)

    assert parameters["body"].endswith("it is an artifact of that run.")


def test_a_report_that_is_a_link_to_another_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("secret")
    (tmp_path / "comment.md").symlink_to("elsewhere")

    with pytest.raises(AssertionError, match=r"comment\.md is not a file"):
        run("pull-request-comment.yml", 1, {}, REPORT=tmp_path, NUMBER="12")


DEPLOYMENT = {
    "op": "update",
    "urn": "urn:pulumi:prod::p::kubernetes:apps/v1:Deployment::web",
    "type": "kubernetes:apps/v1:Deployment",
    "old": {"custom": True, "inputs": {"replicas": "a value"}},
    "new": {"custom": True, "inputs": {"replicas": "a value"}},
    "detailedDiff": {"spec.replicas": {"kind": "update"}, "metadata.labels": {"kind": "add"}},
}
CONTROLLER = "`urn:pulumi:dev::p::pulumi-python:dynamic/cloudcontroller:CloudController::c`"
ISSUE = {"number": 40, "title": "Drift: prod", "user": BOT}


def test_a_stack_that_drifted_gets_an_issue_with_names_and_no_values(tmp_path: Path) -> None:
    events = json.dumps({"resOutputsEvent": {"metadata": DEPLOYMENT}}) + "\n"

    ((name, parameters),) = drift(tmp_path, events + recorded("gone"), [{**ISSUE, "title": "Drift: staging"}])

    assert name == "issues.create"
    assert (parameters["title"], parameters["labels"]) == ("Drift: prod", ["drift"])
    body = parameters["body"]
    assert body.startswith("2 resource(s) of stack `prod` are not as its state says ([run](https://github.example/")
    assert f"- delete {CONTROLLER}\n" in body
    assert "Deployment::web` `metadata.labels` `spec.replicas`\n" in body
    assert "a value" not in body
    assert "pulumi:providers" not in body


def test_the_issue_names_what_drifted_in_the_cluster(tmp_path: Path) -> None:
    ((_, parameters),) = drift(tmp_path, recorded("adrift"), [])

    assert parameters["body"].startswith("1 resource(s) of stack `prod`")
    assert f"- update {CONTROLLER} `route/w1`\n" in parameters["body"]


@pytest.mark.parametrize("recording", ["agreed", "not-made-yet"])
def test_a_stack_without_drift_gets_no_issue(tmp_path: Path, recording: str) -> None:
    assert drift(tmp_path, recorded(recording), []) == []


def test_the_issue_of_a_stack_that_is_still_adrift_is_updated(tmp_path: Path) -> None:
    ((name, parameters),) = drift(tmp_path, recorded("adrift"), [ISSUE])

    assert (name, parameters["issue_number"]) == ("issues.update", 40)
    assert "state" not in parameters


@pytest.mark.parametrize("recording", ["agreed", "not-made-yet"])
def test_the_issue_of_a_mended_stack_is_closed(tmp_path: Path, recording: str) -> None:
    calls = drift(tmp_path, recorded(recording), [ISSUE])

    assert [name for name, _ in calls] == ["issues.createComment", "issues.update"]
    assert (calls[1][1]["issue_number"], calls[1][1]["state"]) == (40, "closed")


def test_each_stacks_file_has_a_name_of_its_own_in_the_one_folder_of_all_artifacts() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "drift.yml").read_text())["jobs"]
    of = {
        step["uses"].partition("@")[0]: step["with"] for job in jobs.values() for step in job["steps"] if "uses" in step
    }

    # A single artifact would be extracted without a folder of its own, as with one stack.
    assert of["actions/download-artifact"]["merge-multiple"] is True
    assert "${{ matrix.stack }}" in of["actions/upload-artifact"]["path"]


def test_a_persons_issue_with_the_same_title_is_left_alone(tmp_path: Path) -> None:
    assert drift(tmp_path, recorded("agreed"), [{**ISSUE, "user": {"login": "a-person"}}]) == []


def test_a_stack_whose_refresh_failed_keeps_its_issue(tmp_path: Path) -> None:
    assert drift(tmp_path, recorded("agreed"), [{**ISSUE, "title": "Drift: staging"}]) == []

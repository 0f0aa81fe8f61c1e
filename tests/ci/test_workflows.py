"""GitHub's workflows: least rights, pinned actions, nothing of a stranger run where rights or secrets are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.pulumi.builds import PULUMI
from tests.ci.actions import ACTIONS
from tests.ci.commands import missing_commands
from tests.ci.workflow_rules import problems

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".github" / "workflows").iterdir())
TEXTS = {file.name: file.read_text() for file in FILES}


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(TEXTS[name])["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("name", TEXTS)
def test_a_workflow_keeps_to_the_rules(name: str) -> None:
    assert problems(TEXTS[name]) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("ci.yml", "permissions: {}", "permissions: {contents: read}", "permissions of the workflow"),
        ("ci.yml", "permissions: {}\n", "", "permissions of the workflow"),
        ("ci.yml", "  pull_request:", "  pull_request_target:", "pull_request_target gives"),
        ("ci.yml", "# v7.0.1", "# v7.0.0", "not in tests/ci/actions.py"),
        ("ci.yml", ACTIONS["actions/checkout"][1], "v7.0.1", "not in tests/ci/actions.py"),
        ("ci.yml", ACTIONS["actions/checkout"][1], "f" * 40, "not in tests/ci/actions.py"),
        ("ci.yml", " # v7.0.1", "", "not in tests/ci/actions.py"),
        ("ci.yml", "actions/checkout", "example/checkout", "not in tests/ci/actions.py"),
        ("ci.yml", "uses: actions/checkout@", "uses : actions/checkout@", "is not written as"),
        ("ci.yml", "    timeout-minutes: 120\n", "", "timeout-minutes is None"),
        ("ci.yml", "timeout-minutes: 120", "timeout-minutes: 360", "timeout-minutes is 360"),
        ("ci.yml", "    permissions:\n      contents: read\n", "", "not listed one by one"),
        ("ci.yml", "    permissions:\n      contents: read\n", "    permissions: read-all\n", "not listed one by one"),
        ("ci.yml", "persist-credentials: false", "persist-credentials: true", "leaves its token"),
        ("ci.yml", "run: .ci/run", "run: .ci/run ${{ github.event.pull_request.title }}", "use env"),
        ("ci.yml", "run: .ci/run", "run: TOKEN=${{ secrets.TOKEN }} .ci/run", "has no secrets"),
        ("ci.yml", "contents: read", "contents: write", "may only read"),
        ("ci.yml", "runs-on:", "environment: prod\n    runs-on:", "has no environment"),
        ("drift.yml", "    environment: ${{ matrix.stack }}-preview\n", "", "has an identity"),
        ("drift.yml", "const fs", "const title = '${{ github.event.issue.title }}'; const fs", "use env"),
        ("preview.yml", "github.event.pull_request.head.repo.full_name == github.repository", "true", "only read"),
        (
            "pull-request-comment.yml",
            "      - id: find",
            "      - run: make\n      - id: find",
            "after a stranger's run",
        ),
    ],
)
def test_a_workflow_that_breaks_a_rule_is_found(name: str, old: str, new: str, problem: str) -> None:
    assert old in TEXTS[name]

    # Once is enough: each rule is about every place.
    broken = TEXTS[name].replace(old, new, 1)

    assert problem in "\n".join(problems(broken))


def test_every_action_of_the_list_is_used() -> None:
    assert set(ACTIONS) == set(re.findall(r"uses: ([^@\s]+)@", "".join(TEXTS.values())))


@pytest.mark.parametrize("name", TEXTS)
def test_a_workflow_runs_only_commands_that_exist(name: str) -> None:
    assert missing_commands(line for step in steps(name) for line in step.get("run", "").splitlines()) == []


def test_the_version_of_pulumis_cli_is_the_one_that_the_tests_build() -> None:
    versions = [
        step["with"]["pulumi-version"]
        for name in TEXTS
        for step in steps(name)
        if "pulumi/actions" in step.get("uses", "")
    ]

    assert set(versions) == {PULUMI.version().removeprefix("v")}


def test_the_comment_follows_the_workflow_that_writes_the_report() -> None:
    written = yaml.safe_load(TEXTS["pull-request.yml"])
    comment = yaml.safe_load(TEXTS["pull-request-comment.yml"])
    (upload,) = [step for step in steps("pull-request.yml") if "upload-artifact" in step.get("uses", "")]

    assert comment[True]["workflow_run"]["workflows"] == [written["name"]]
    assert f"name: '{upload['with']['name']}'" in TEXTS["pull-request-comment.yml"]


def test_dependabot_updates_every_workflow_and_every_lock() -> None:
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())["updates"]
    found = {
        (one["package-ecosystem"], folder)
        for one in updates
        for folder in one.get("directories", [one.get("directory")])
    }

    locks = {("pip", "/"), ("pip", "/image"), ("gomod", "/tools/actionlint"), ("gomod", "/tools/prometheus")}
    assert {("github-actions", "/"), *locks} == found

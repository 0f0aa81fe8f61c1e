"""GitLab's pipeline: its jobs call what exists, have limits, and give a stranger nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from local.pulumi.builds import PULUMI
from tests.ci.commands import missing_commands

ROOT = Path(__file__).resolve().parents[2]
PIPELINE: dict[str, Any] = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())
JOBS = {name: job for name, job in PIPELINE.items() if isinstance(job, dict) and "script" in job}


def test_the_jobs_are_the_difference_and_the_preview() -> None:
    assert set(JOBS) == {"diff", "preview"}
    assert {job["stage"] for job in JOBS.values()} <= set(PIPELINE["stages"])


@pytest.mark.parametrize("name", JOBS)
def test_a_job_runs_only_commands_that_exist_and_has_a_limit(name: str) -> None:
    assert missing_commands(JOBS[name]["script"]) == []
    assert JOBS[name]["timeout"] == "30 minutes"


def test_the_pipeline_is_for_merge_requests_only() -> None:
    assert PIPELINE["workflow"] == {"rules": [{"if": '$CI_PIPELINE_SOURCE == "merge_request_event"'}]}


def test_only_the_preview_of_a_branch_of_the_project_has_an_identity() -> None:
    assert [name for name, job in JOBS.items() if "id_tokens" in job or "environment" in job] == ["preview"]
    (rule,) = JOBS["preview"]["rules"]
    assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_MERGE_REQUEST_PROJECT_ID" in rule["if"]


def test_both_jobs_run_the_version_of_pulumi_that_the_tests_build() -> None:
    image = f"pulumi/pulumi-python-3.12:{PULUMI.version().removeprefix('v')}"

    assert JOBS["preview"]["image"] == f"{image}@$PULUMI_IMAGE_DIGEST"
    assert PIPELINE["variables"]["PYTHON_IMAGE"] == image


def test_the_preview_is_of_stacks_that_exist() -> None:
    preview = JOBS["preview"]

    for stack in preview["parallel"]["matrix"][0]["STACK"]:
        assert (ROOT / "stacks" / f"Pulumi.{stack}.yaml").is_file()
        assert (ROOT / "stacks" / f"policies.{stack}.json").is_file()


def test_images_are_variables_so_that_a_project_names_them_by_digest() -> None:
    assert {name: job["image"].rpartition("@")[2] for name, job in JOBS.items()} == {
        "diff": "$PYTHON_IMAGE",
        "preview": "$PULUMI_IMAGE_DIGEST",
    }
    assert "PULUMI_IMAGE_DIGEST" not in PIPELINE["variables"]


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("make set-up", []),
        ("make nothing", ["make nothing"]),
        ("tools/changed-stacks --base HEAD^1", []),
        ("tools/gone", ["tools/gone"]),
        (".venv/bin/gone --help", [".venv/bin/gone --help"]),
        ('changed=$(tools/gone --stacks "$STACKS")', ['tools/gone --stacks "$STACKS"']),
        ('(umask 077 && curl "$URL" > file)', ['curl "$URL" > file']),
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str, missing: list[str]) -> None:
    assert missing_commands([line]) == missing

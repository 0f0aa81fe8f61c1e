"""What every GitHub workflow here must keep to, beyond what actionlint and zizmor check."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.ci.actions import ACTIONS

USES = re.compile(r"^\s*(?:- )?uses: *(\S+)(?: +# (\S+))?$", re.MULTILINE)
LONGEST_MINUTES = 120
SAME_REPOSITORY = "github.event.pull_request.head.repo.full_name == github.repository"


def problems(text: str) -> list[str]:
    """What is wrong in a workflow's text, in the order of the rules."""
    workflow = yaml.safe_load(text)
    # YAML 1.1 reads the key `on` as true.
    triggers = set(workflow[True])
    jobs: dict[str, dict[str, Any]] = workflow["jobs"]
    found = [*_of_workflow(workflow, triggers), *_of_actions(text)]
    for name, job in jobs.items():
        found += [f"{name}: {problem}" for problem in _of_job(job)]
    if "workflow_run" in triggers:
        found += _after_a_stranger(jobs)
    if "pull_request" in triggers and not _is_for_this_repository(jobs):
        found += _for_strangers(text, jobs)
    return found


def _of_workflow(workflow: dict[Any, Any], triggers: set[str]) -> Iterator[str]:
    if workflow.get("permissions") != {}:
        yield "permissions of the workflow are not {}"
    if "pull_request_target" in triggers:
        yield "pull_request_target gives code of strangers this repository's token"


def _of_actions(text: str) -> Iterator[str]:
    if len(USES.findall(text)) != len(re.findall(r"\buses\"? *:", text)):
        yield "a `uses:` is not written as `uses: ACTION@COMMIT # VERSION`"
    for used, version in USES.findall(text):
        action, _, commit = used.partition("@")
        if ACTIONS.get(action) != (version, commit):
            yield f"{used} # {version} is not in tests/ci/actions.py"


def _of_job(job: dict[str, Any]) -> Iterator[str]:
    minutes = job.get("timeout-minutes")
    if not isinstance(minutes, int) or minutes > LONGEST_MINUTES:
        yield f"timeout-minutes is {minutes}, not 1 to {LONGEST_MINUTES}"
    permissions = job.get("permissions")
    if not isinstance(permissions, dict):
        yield "permissions are not listed one by one"
    elif "id-token" in permissions and "environment" not in job:
        yield "has an identity, but no environment that limits who gets it"
    for step in job["steps"]:
        given = step.get("with", {})
        if "${{" in step.get("run", "") + given.get("script", ""):
            yield "a script has ${{ }}: text from outside would become a part of it; use env"
        if step.get("uses", "").startswith("actions/checkout@") and given.get("persist-credentials") is not False:
            yield "the checkout leaves its token in the folder"


def _after_a_stranger(jobs: dict[str, dict[str, Any]]) -> Iterator[str]:
    for name, job in jobs.items():
        for step in job["steps"]:
            if "run" in step or "checkout" in step["uses"] or step["uses"].startswith("."):
                yield f"{name}: after a stranger's run it runs what a repository holds"


def _is_for_this_repository(jobs: dict[str, dict[str, Any]]) -> bool:
    """Whether no job starts for a pull request from a fork."""
    return all(SAME_REPOSITORY in job.get("if", "") or job.get("needs") in jobs for job in jobs.values())


def _for_strangers(text: str, jobs: dict[str, dict[str, Any]]) -> Iterator[str]:
    if re.search(r"\bsecrets\b", re.sub(r"#.*", "", text)):
        yield "a fork's pull request has no secrets"
    for name, job in jobs.items():
        permissions = job.get("permissions")
        if isinstance(permissions, dict) and set(permissions.values()) - {"read"}:
            yield f"{name}: a fork's pull request may only read"
        if "environment" in job:
            yield f"{name}: a fork's pull request has no environment"

"""What Pulumi's CLI promises of stack `local`: refresh, interruptions, locks, targets, import, reports.

Modules that run later find the shared stack as it was. The rest of the CLI's work is in test_stack_local.py.
"""

from __future__ import annotations

import io
import json
import signal
from pathlib import Path

import pytest

from cloud_controller.kube import CONFIG_MAPS, DEPLOYMENTS
from cloud_stacks import cli as cloud_stacks
from tests.e2e.breaking.cloud import fault
from tests.e2e.local_stack import LocalStack, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

THEIRS = {"metadata": {"name": "theirs", "namespace": "default"}, "data": {"key": "value"}}


@pytest.fixture(scope="module")
def stack(shared_stack: LocalStack) -> LocalStack:
    return shared_stack


def urn(stack: LocalStack, ending: str) -> str:
    """The URN of the only resource that ends like this."""
    resources = json.loads(stack.pulumi("stack", "export"))["deployment"]["resources"]
    [found] = [str(each["urn"]) for each in resources if each["urn"].endswith(ending)]
    return found


def test_the_kubernetes_provider_is_pulumis_own(stack: LocalStack) -> None:
    [plugin] = (stack.state / "stacks/local/home/plugins").glob("resource-kubernetes-v*/pulumi-resource-kubernetes")

    assert plugin.is_symlink()


def test_a_refresh_without_drift_changes_nothing_the_first_and_the_second_time(stack: LocalStack) -> None:
    assert stack.changes("refresh", "--expect-no-changes") == {}
    assert stack.changes("refresh", "--expect-no-changes") == {}


def test_a_refresh_finds_what_others_deleted_and_up_makes_it_again(stack: LocalStack) -> None:
    stack.kube.delete(DEPLOYMENTS, "echo", "default")

    assert stack.changes("refresh") == {"delete": 1}
    assert stack.changes("up") == {"create": 1}


def test_expected_no_changes_but_a_change_is_exit_code_7(stack: LocalStack) -> None:
    stack.scale_workers(4)
    try:
        stack.run("preview", "--expect-no-changes", expect=7)
    finally:
        stack.scale_workers(3)


def test_only_the_targets_change(stack: LocalStack) -> None:
    target = urn(stack, "apps/v1:Deployment::web")
    stack.configure("sourceRanges", ["127.0.0.0/9"])
    try:
        assert stack.changes("preview", "--target", target) == {}
        assert stack.changes("preview") != {}
    finally:
        stack.configure("sourceRanges", ["127.0.0.0/8"])


def test_a_second_run_is_refused_while_the_first_works_and_ctrl_c_ends_that_one_cleanly(stack: LocalStack) -> None:
    stack.scale_workers(4)
    run = stack.start("up")
    names = {str(m["name"]) for m in stack.cloud.list("machines", state="running")}
    eventually(lambda: {m["name"] for m in stack.cloud.list("machines")} - names, "the machine is being made")
    # On a busy machine, the first would be done before the second has begun.
    with fault("GET *machines*", kind="latency", seconds=5)(stack):
        try:
            assert "another run is changing stack local" in stack.run("up", expect=1)
        finally:
            run.send_signal(signal.SIGINT)
            assert run.wait() != 0

    stack.run("up")
    assert stack.changes("preview") == {}
    stack.scale_workers(3)
    stack.run("up")


def test_a_lock_of_another_machine_keeps_runs_out_until_it_is_cancelled(stack: LocalStack) -> None:
    locks = stack.state / "stacks/local/pulumi/.pulumi/locks/organization/cloud-controller/local"
    locks.mkdir(parents=True, exist_ok=True)
    pid = 4_194_305  # above Linux's highest, so no process of this machine
    theirs = {"pid": pid, "username": "they", "hostname": "elsewhere", "timestamp": "2026-11-29T12:00:02.5Z"}
    (locks / "6a5a9d5a-4a3b-4f0e-8d4c-2f1f2b8f4a10.json").write_text(json.dumps(theirs))
    assert f"they@elsewhere (pid {pid})" in stack.on_copy("up", expect=1), "the CLI takes it for a lock"

    refused = stack.run("up", expect=1)
    stack.pulumi("cancel", "--yes")

    assert f"another run is changing stack local (process {pid} on elsewhere, since 2026-11-29T12:00:02)" in refused
    assert 'make pulumi STACK=local ARGS="cancel --yes"' in refused
    assert stack.changes("up", "--skip-preview") == {}


def test_an_object_of_others_is_imported_and_given_back(stack: LocalStack) -> None:
    stack.kube.create(CONFIG_MAPS, THEIRS)
    provider = urn(stack, "pulumi:providers:kubernetes::local")
    what = ("kubernetes:core/v1:ConfigMap", "theirs", "default/theirs")
    try:
        stack.pulumi(
            "import", *what, "--provider", f"local={provider}", "--protect=false", "--yes", "--generate-code=false"
        )
        imported = urn(stack, "core/v1:ConfigMap::theirs")
        stack.pulumi("state", "delete", imported, "--yes")
        assert stack.kube.get(CONFIG_MAPS, "theirs", "default")["data"] == THEIRS["data"]
    finally:
        stack.kube.delete(CONFIG_MAPS, "theirs", "default")


def test_digest_and_event_log_of_a_preview_become_a_report(stack: LocalStack, tmp_path: Path) -> None:
    stack.scale_workers(4)
    log = tmp_path / "events.jsonl"
    try:
        digest = stack.run("preview", "--json", "--event-log", str(log))
    finally:
        stack.scale_workers(3)
    (tmp_path / "digest.json").write_text(digest)

    for file in ("digest.json", "events.jsonl"):
        shown = io.StringIO()
        cloud_stacks.main(["report", str(tmp_path / file)], shown)
        assert "1 to create" in shown.getvalue()
        assert "local-workers-3" in shown.getvalue()


def test_no_secret_is_in_state_digest_event_log_or_export(stack: LocalStack, tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    token = (stack.state / "mycloud" / "token").read_text().strip()
    shown = [stack.run("preview", "--json", "--event-log", str(log)), stack.pulumi("stack", "export"), log.read_text()]
    files = [file for file in (stack.state / "stacks").rglob("*") if file.is_file() and file.stat().st_size < 1 << 24]

    assert [each for each in (*shown, *(file.read_text(errors="replace") for file in files)) if token in each] == []

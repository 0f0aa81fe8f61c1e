"""Stacks of a recorded cloud: `make preview` shows them whole, checked by their policies, without an account."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from local.__main__ import main
from local.engine import cli

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def _nobodys_account(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALICLOUD_ACCESS_KEY")
    for name in (*keys, "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _own_umask() -> Iterator[None]:
    """The command line changes the umask of its process, which is the other tests' too."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def previewed(stack: str, state: Path, capsys: pytest.CaptureFixture[str]) -> Sequence[dict[str, Any]]:
    """The events of the preview, which must succeed."""
    assert main(["preview", "--stack", stack, "--state", str(state), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("stack", ["aws-prod", "aws-staging"])
def test_a_stack_on_aws_is_previewed_without_an_account(
    stack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = previewed(stack, tmp_path, capsys)

    violations = [event for event in events if "policyEvent" in event]
    steps = [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]
    assert violations == []
    assert {step["op"] for step in steps} == {"create"}
    types = {step["type"] for step in steps}
    assert {"aws:ec2/vpc:Vpc", "kubernetes:core/v1:Service"} <= types
    assert ("aws:eks/addon:Addon" in types) == (stack == "aws-prod")
    assert not (tmp_path / "site.json").exists()


@pytest.mark.parametrize(
    ("stack", "of_shape"),
    [
        ("alicloud-prod", "alicloud:cs/managedKubernetes:ManagedKubernetes"),
        ("alicloud-staging", "alicloud:ecs/instance:Instance"),
    ],
)
def test_a_stack_on_alibaba_cloud_is_previewed_without_an_account(
    stack: str, of_shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = previewed(stack, tmp_path, capsys)

    steps = [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]
    assert [event for event in events if "policyEvent" in event] == []
    assert {step["op"] for step in steps} == {"create"}
    assert {"alicloud:vpc/network:Network", of_shape, "kubernetes:core/v1:Service"} <= {step["type"] for step in steps}
    assert not (tmp_path / "site.json").exists()


@pytest.mark.parametrize("stack", ["aws-prod", "alicloud-prod", "alicloud-staging"])
def test_a_preview_of_what_was_recorded_shows_no_change(
    stack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--stack", stack, "--state", str(tmp_path)]) == 0
    capsys.readouterr()

    events = previewed(stack, tmp_path, capsys)

    steps = [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]
    assert {step["op"] for step in steps} == {"same"}


def test_an_interrupted_recorded_run_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Sequence[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)

    assert main(["up", "--stack", "aws-prod", "--state", str(tmp_path)]) == 1
    assert "interrupted; run `up` again to continue" in capsys.readouterr().err

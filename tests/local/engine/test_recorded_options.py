"""Resource options and targets against recordings of the real CLI: the same steps, and the same state."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.engine import cli
from tests.local.engine.recordings import PASSPHRASE, SALT, SAMPLES, SIGNATURE
from tests.local.engine.things import Memory, MemoryProvider

pytestmark = pytest.mark.engine

RECORDINGS = SAMPLES / "recordings-2/c-options"
ITEM = "urn:pulumi:dev::options::pulumi-python:dynamic/sample:Item::"
VOLATILE = {"created", "modified", "sourcePosition", "stackTrace", "provider"}
"""Different in each run: the id of the provider's instance, and the SDK's line."""
A_STEP = re.compile(r"^ \S+ +\S+ (\S+) (create|update|replace|import|delete)\b(?! replacement| original)")


class Options:
    """The recorded program in a folder of its own; its objects in a cluster are in memory."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory / "program"
        shutil.copytree(SAMPLES / "program-2/options", self.directory)
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
        cluster = Memory()
        monkeypatch.setattr(cli, "_kubernetes", lambda resource: MemoryProvider(cluster, resource.inputs))

    def run(self, part: str, step: int, *arguments: str) -> str:
        """The command line at one step of a part; returns the output."""
        config = {"options:part": part, "options:step": step, "options:kubeconfig": "of a cluster"}
        stack_file = {"encryptionsalt": SALT, "config": config}
        (self.directory / "Pulumi.dev.yaml").write_text(yaml.safe_dump(stack_file))
        sys.modules.pop("providers", None)
        out = io.StringIO()
        assert cli.main([*arguments, "--stack", "dev", "--cwd", str(self.directory)], out) == 0
        return out.getvalue()

    def up(self, part: str, step: int = 0) -> None:
        self.run(part, step, "up", "--skip-preview")

    def previewed(self, part: str, step: int, *arguments: str) -> set[tuple[str, str]]:
        """The preview's steps: name and operation of everything that changes."""
        events = map(json.loads, self.run(part, step, "preview", "--json", *arguments).splitlines())
        steps = [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]
        reported = [
            each for each in steps if each["op"] not in ("same", "delete-replaced") and not _is_default(each["urn"])
        ]
        return {(each["urn"].rpartition("::")[2], each["op"]) for each in reported}

    def state(self) -> dict[str, Any]:
        return _comparable(json.loads(self.run("", 0, "stack", "export")))


def _is_default(urn: str) -> bool:
    return urn.endswith("::default")


def _comparable(document: dict[str, Any]) -> dict[str, Any]:
    """The resources by URN, without what differs from run to run; the recorded secrets' passphrase is not known."""
    resources = [each for each in document["deployment"]["resources"] if not _is_default(each["urn"])]
    return {each["urn"]: _without_secrets({k: v for k, v in each.items() if k not in VOLATILE}) for each in resources}


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return "a secret" if SIGNATURE in value else {k: _without_secrets(v) for k, v in value.items()}
    return [_without_secrets(each) for each in value] if isinstance(value, list) else value


def recorded_steps(name: str) -> set[tuple[str, str]]:
    """The steps of the CLI's preview."""
    lines = (RECORDINGS / f"{name}.txt").read_text().splitlines()
    return {match.groups() for line in lines if (match := A_STEP.match(line))}  # type: ignore[misc]


def recorded_state(name: str) -> dict[str, Any]:
    return _comparable(json.loads((RECORDINGS / f"{name}.json").read_text()))


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Options]:
    yield Options(tmp_path, monkeypatch)
    sys.modules.pop("providers", None)


def test_hidden_differences_and_replacements_on_changes_are_in_the_state_as_recorded(options: Options) -> None:
    options.up("diffs")

    assert options.state() == recorded_state("01-export")


def test_replace_on_changes_replaces_where_the_engine_compares_or_the_provider_says_so(options: Options) -> None:
    """Not where a provider's own `diff` reports a change without naming it."""
    options.up("diffs")

    previewed = options.previewed("diffs", 1)

    assert previewed == recorded_steps("02-diffs-preview")
    assert ("NoDiff-replace", "replace") in previewed and ("OnlyChanges-replace", "update") in previewed


def test_every_option_is_in_the_state_as_recorded_also_after_a_rename(options: Options) -> None:
    options.up("options")
    assert options.state() == recorded_state("10-export")

    options.up("options", 1)
    assert options.state() == recorded_state("13-export")


@pytest.mark.parametrize(
    ("name", "step", "arguments"),
    [
        ("41-target-preview", 1, ["--target", f"{ITEM}a"]),
        ("42-target-dependents-preview", 1, ["--target", f"{ITEM}a", "--target-dependents"]),
        ("43-target-wildcard-preview", 1, ["--target", "**::c"]),
        ("62-target-new-preview", 2, ["--target", f"{ITEM}new"]),
    ],
)
def test_targets_select_the_same_resources_as_in_the_cli(
    options: Options, name: str, step: int, arguments: list[str]
) -> None:
    options.up("targets")

    assert options.previewed("targets", step, *arguments) == recorded_steps(name)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("52-replace-preview", ["--replace", f"{ITEM}a"]),
        ("54-target-replace-preview", ["--target-replace", f"{ITEM}b"]),
    ],
)
def test_replace_replaces_the_same_resources_as_the_cli(options: Options, name: str, arguments: list[str]) -> None:
    options.up("targets")
    # As recorded: the targets of earlier runs are up to date.
    options.run("targets", 1, "up", "--skip-preview", "--target", f"{ITEM}a")

    assert options.previewed("targets", 1, *arguments) == recorded_steps(name)

"""Every recorded case of a stack's config: the engine accepts what the CLI accepts, and has its error messages."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.engine import operations
from local.engine.cli import main
from local.engine.program.runner import ProgramRun
from local.engine.stack.secrets import open_crypter
from tests.local.engine.recordings import PASSPHRASE, SALT, SAMPLES

RECORDED = (SAMPLES / "recordings-2/b-config/cases.jsonl").read_text().splitlines()
CASES: dict[str, dict[str, Any]] = {case["case"]: case for case in map(json.loads, RECORDED)}
TAKEN = [name for name, case in CASES.items() if case["run"] == ["preview"] and case["exit"] == 0]
"""Without those of the options -c and --skip-config-validation, which the engine does not have."""
SECRETS = {
    "v1:eTqO3INSu6B7VF6T:GqRkbf+V10nogr25bcgRjbu8Ktrw2g==": "hidden",
    "v1:8TVF1Asa1Wn/CToS:dMPJyqyc4gRLMW012RW6jQJV2w==": "too",
    "v1:Qf6E8CmTh8KJOnXY:5FdjAgLtbotIZwuXwNOMnZjOeqM=": "many",
    "v1:YE9MqUrs26FtdFr2:uZT6kQhL3qxLUmtchAdEhA==": "",
}
"""The plaintexts of the recorded ciphertexts. Their salt was not recorded: for the engine they are encrypted again."""


class Replay:
    """A recorded case, run by the engine's command line."""

    def __init__(self, case: dict[str, Any], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
        monkeypatch.setattr("local.engine.cli.Options", partial(operations.Options, run_program=self._program))
        self.directory = directory
        self.got: dict[str, Any] | None = None
        project = {"name": "settings", "runtime": "python"} | ({"config": case["project"]} if case["project"] else {})
        (directory / "Pulumi.yaml").write_text(yaml.safe_dump(project))
        text = case["stack_file"]
        for ciphertext, plaintext in SECRETS.items():
            if ciphertext in text:
                text = text.replace(ciphertext, open_crypter(PASSPHRASE, SALT).encrypt(plaintext))
        self.stack_file = directory / "Pulumi.dev.yaml"
        self.stack_file.write_text(f"encryptionsalt: {SALT}\n{text}")

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit code and the output without errors."""
        out = io.StringIO()
        return main([*arguments, "--stack", "dev", "--cwd", str(self.directory)], out), out.getvalue()

    def _program(self, program: ProgramRun, monitor: object, on_line: object) -> None:
        del monitor, on_line
        secret = {"configSecretKeys": sorted(program.config.secret_keys)} if program.config.secret_keys else {}
        self.got = ({"config": dict(program.config.values)} if program.config.values else {}) | secret


@pytest.mark.integration
@pytest.mark.parametrize("name", TAKEN)
def test_the_program_gets_the_same_config_as_from_the_cli(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = Replay(CASES[name], tmp_path, monkeypatch)

    code, shown = replay.run("preview")

    assert (code, replay.got) == (0, CASES[name]["program_got"])
    assert ("No value for configuration key" in shown) == ("No value for" in CASES[name]["output"])


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name]["exit"] == 1])
def test_invalid_config_is_refused_with_the_clis_message(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replay = Replay(CASES[name], tmp_path, monkeypatch)

    code, _ = replay.run(CASES[name]["run"][0])

    reported = capsys.readouterr().err.splitlines()[0]
    recorded = CASES[name]["output"].replace("PROGRAM/config", str(tmp_path))
    if "could not validate" in recorded:
        # The CLI lists every other violation of the declaration; one line has the cause.
        reported, _, wrong = reported.partition(": #")
        assert f"* #{wrong}\n" in recorded
    assert reported in recorded and reported.startswith("error: ")
    assert code == 1 and replay.got is None


@pytest.mark.integration
@pytest.mark.parametrize("command", ["destroy", "refresh"])
def test_commands_without_the_program_need_no_valid_config(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = Replay(CASES[f"not set, {command}"], tmp_path, monkeypatch)

    assert replay.run(command)[0] == 0


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name]["run"][0] == "config"])
def test_the_config_is_listed_in_the_clis_form(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replay = Replay(CASES[name], tmp_path, monkeypatch)

    assert replay.run(*CASES[name]["run"]) == (0, CASES[name]["output"])

"""The passphrase of a stack: its sources, and the effect of a full disk on a new one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from local.engine.stack.secrets import SecretsError
from local.engine.stack.session import crypter_of, passphrase_of
from tests.local.engine.recordings import SALT


@pytest.fixture(autouse=True)
def no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE_FILE", raising=False)


def test_a_new_passphrase_is_stored_readable_only_by_its_user(tmp_path: Path) -> None:
    made = passphrase_of(tmp_path / "dev", needed=False, create=True)

    assert len(made) >= 32 and passphrase_of(tmp_path / "dev", needed=True, create=False) == made
    (file,) = (tmp_path / "dev").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_passphrase_that_could_not_be_written_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, *_: object) -> object:
        os.close(file)
        raise OSError("No space left on device")

    with monkeypatch.context() as disk, pytest.raises(OSError, match="No space left"):
        disk.setattr(os, "fdopen", full)
        passphrase_of(tmp_path, needed=False, create=True)

    assert not (tmp_path / "passphrase").exists()
    assert passphrase_of(tmp_path, needed=False, create=True)


def test_an_empty_passphrase_file_is_an_error_but_an_empty_variable_is_a_passphrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "passphrase").write_text("\n")
    with pytest.raises(SecretsError, match="passphrase is empty"):
        passphrase_of(tmp_path, needed=False, create=True)

    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "")
    assert passphrase_of(tmp_path, needed=True, create=False) == ""


def test_a_passphrase_file_that_is_not_text_is_named_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "passphrase").write_bytes(b"hunter\xff2")

    with pytest.raises(SecretsError) as caught:
        passphrase_of(tmp_path, needed=True, create=False)

    assert str(caught.value) == f"{tmp_path / 'passphrase'} is not UTF-8 text"
    assert caught.value.__suppress_context__


def test_a_passphrase_file_in_the_environment_precedes_the_one_beside_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "passphrase").write_text("beside")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(tmp_path / "named"))
    with pytest.raises(SecretsError, match="does not exist"):
        passphrase_of(tmp_path, needed=False, create=False)

    (tmp_path / "named").write_text("named\n")
    assert passphrase_of(tmp_path, needed=False, create=False) == "named"


class TestAWrongPassphrase:
    """The error names the file with the secrets, the passphrase's source, and the remedy."""

    def reported(self, directory: Path) -> str:
        with pytest.raises(SecretsError) as caught:
            crypter_of(directory, "wrong", SALT, Path("Pulumi.dev.yaml"))
        place, _, origin = str(caught.value).partition(": the passphrase does not match its secrets; it comes from ")
        assert place == "Pulumi.dev.yaml"
        return origin

    def test_a_wrong_passphrase_in_the_file_beside_the_state_is_explained(self, tmp_path: Path) -> None:
        expected = "write the passphrase that encrypted them to it, or set PULUMI_CONFIG_PASSPHRASE"

        assert self.reported(tmp_path) == f"{tmp_path / 'passphrase'}: {expected}"

    def test_a_wrong_passphrase_in_a_variable_that_hides_the_file_is_explained(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of another project")
        alone = "PULUMI_CONFIG_PASSPHRASE: set it to the passphrase that encrypted them"

        assert self.reported(tmp_path) == alone
        (tmp_path / "passphrase").write_text("hidden")
        assert self.reported(tmp_path) == f"{alone}, or unset the variable to use {tmp_path / 'passphrase'}"

    def test_a_wrong_passphrase_in_a_file_that_a_variable_names_is_explained(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", "named")

        assert self.reported(tmp_path).startswith("named (PULUMI_CONFIG_PASSPHRASE_FILE): write ")

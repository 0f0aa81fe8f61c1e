"""The passphrase of a stack: where it is found, and what a disk that is full leaves of a new one."""

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


def test_a_new_one_is_kept_for_its_user_alone(tmp_path: Path) -> None:
    made = passphrase_of(tmp_path / "dev", needed=False, create=True)

    assert len(made) >= 32 and passphrase_of(tmp_path / "dev", needed=True, create=False) == made
    (file,) = (tmp_path / "dev").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_one_that_could_not_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, *_: object) -> object:
        os.close(file)
        raise OSError("No space left on device")

    with monkeypatch.context() as disk, pytest.raises(OSError, match="No space left"):
        disk.setattr(os, "fdopen", full)
        passphrase_of(tmp_path, needed=False, create=True)

    assert not (tmp_path / "passphrase").exists()
    assert passphrase_of(tmp_path, needed=False, create=True)


def test_an_empty_file_is_no_passphrase_but_an_empty_variable_is_one(
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

    assert str(caught.value) == f"{tmp_path / 'passphrase'} is not text"
    assert caught.value.__suppress_context__


def test_a_named_file_comes_before_the_one_beside_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "passphrase").write_text("beside")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(tmp_path / "named"))
    with pytest.raises(SecretsError, match="does not exist"):
        passphrase_of(tmp_path, needed=False, create=False)

    (tmp_path / "named").write_text("named\n")
    assert passphrase_of(tmp_path, needed=False, create=False) == "named"


class TestAWrongPassphrase:
    """The error names the file with the secrets, where the passphrase comes from, and what to do."""

    def told(self, directory: Path) -> str:
        with pytest.raises(SecretsError) as caught:
            crypter_of(directory, "wrong", SALT, Path("Pulumi.dev.yaml"))
        place, _, origin = str(caught.value).partition(": the passphrase does not fit its secrets; it comes from ")
        assert place == "Pulumi.dev.yaml"
        return origin

    def test_of_the_file_beside_the_state(self, tmp_path: Path) -> None:
        expected = "put the passphrase that they were encrypted with there, or set PULUMI_CONFIG_PASSPHRASE"

        assert self.told(tmp_path) == f"{tmp_path / 'passphrase'}: {expected}"

    def test_of_a_variable_that_hides_that_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of another project")
        alone = "PULUMI_CONFIG_PASSPHRASE: set it to the passphrase that they were encrypted with"

        assert self.told(tmp_path) == alone
        (tmp_path / "passphrase").write_text("hidden")
        assert self.told(tmp_path) == f"{alone}, or unset the variable: then {tmp_path / 'passphrase'} counts"

    def test_of_a_file_that_a_variable_names(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", "named")

        assert self.told(tmp_path).startswith("named (PULUMI_CONFIG_PASSPHRASE_FILE): put ")

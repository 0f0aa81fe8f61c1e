"""The passphrase of a stack: where it is found, and what a disk that is full leaves of a new one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from local.engine.stack.secrets import SecretsError
from local.engine.stack.session import passphrase_of


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


def test_a_named_file_comes_before_the_one_beside_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "passphrase").write_text("beside")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(tmp_path / "named"))
    with pytest.raises(SecretsError, match="does not exist"):
        passphrase_of(tmp_path, needed=False, create=False)

    (tmp_path / "named").write_text("named\n")
    assert passphrase_of(tmp_path, needed=False, create=False) == "named"

"""The passphrase of a stack's secrets: from the CLI's environment variables, or a file in the stack's folder."""

from __future__ import annotations

import os
import secrets as randomness
from pathlib import Path
from typing import Final

from local.pulumi.secrets import (
    PASSPHRASE_VARIABLE,
    PassphraseCrypter,
    SecretsError,
    WrongPassphraseError,
    open_crypter,
)
from local.state_folder import write_private

PASSPHRASE_FILE: Final = "passphrase"
FILE_VARIABLE: Final = f"{PASSPHRASE_VARIABLE}_FILE"


def passphrase_of(directory: Path, *, needed: bool, create: bool) -> str:
    """The passphrase of the stack in that folder.

    Without one, a stack without secrets gets a new one, stored there if `create`. Raises SecretsError if `needed`.
    """
    path = directory / PASSPHRASE_FILE
    value = os.environ.get(PASSPHRASE_VARIABLE)
    if value is not None:
        return value
    if named := os.environ.get(FILE_VARIABLE):
        path = Path(named)
        if not path.exists():
            raise SecretsError(f"{FILE_VARIABLE} is {path}, which does not exist")
    elif path.exists() and not _read(path):
        # An empty passphrase in the environment is intended; an empty file may be the result of a full disk.
        raise SecretsError(f"{path} is empty: write the passphrase to it, or set {PASSPHRASE_VARIABLE}")
    if path.exists():
        return _read(path)
    if needed:
        raise SecretsError(f"there is no passphrase for the stack: set {PASSPHRASE_VARIABLE}, or write it to {path}")
    value = randomness.token_urlsafe(24)
    if create:
        directory.mkdir(parents=True, exist_ok=True)
        write_private(path, f"{value}\n")
    return value


def crypter_of(directory: Path, passphrase: str, salt: str, place: Path) -> PassphraseCrypter:
    """The crypter of the salt in the file `place`, with the passphrase of the stack in that folder.

    Raises SecretsError, which names that file, the passphrase's source, and the solution.
    """
    try:
        return open_crypter(passphrase, salt)
    except WrongPassphraseError as error:
        origin = _origin(directory)
        raise SecretsError(f"{place}: the passphrase does not match its secrets; it comes from {origin}") from error
    except SecretsError as error:
        raise SecretsError(f"{place}: {error}") from error


def _origin(directory: Path) -> str:
    """Where `passphrase_of` finds the passphrase, and how to correct a wrong one."""
    file, right = directory / PASSPHRASE_FILE, "the passphrase that encrypted them"
    unset = f", or unset the variable to use {file}" if file.exists() else ""
    if PASSPHRASE_VARIABLE in os.environ:
        return f"{PASSPHRASE_VARIABLE}: set it to {right}{unset}"
    if named := os.environ.get(FILE_VARIABLE):
        return f"{named} ({FILE_VARIABLE}): write {right} to it{unset}"
    return f"{file}: write {right} to it, or set {PASSPHRASE_VARIABLE}"


def _read(path: Path) -> str:
    """The passphrase in a file. Raises SecretsError, without the file's content."""
    try:
        return path.read_text().strip()
    except OSError as error:
        raise SecretsError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SecretsError(f"{path} is not UTF-8 text") from None

"""Opens a stack for one run: its project, its config, its secrets and its state."""

from __future__ import annotations

import json
import os
import secrets as randomness
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from local.engine.stack.config import Config, resolve, validate
from local.engine.stack.project import Project, ProjectError, StackFile, load_project, load_stack_file
from local.engine.stack.resource import ResourceState
from local.engine.stack.secrets import (
    PASSPHRASE_VARIABLE,
    Crypter,
    PassphraseCrypter,
    SecretsError,
    WrongPassphraseError,
    derive_ahead,
    new_crypter,
    open_crypter,
)
from local.engine.stack.state import STATE_FILE, StateError, Store
from local.plugins.values import PLACEHOLDER

PASSPHRASE_FILE: Final = "passphrase"
RIGHT_PASSPHRASE: Final = "the passphrase that encrypted them"
STATE_VARIABLE: Final = "CLOUD_CONTROLLER_STATE"


@dataclass(frozen=True, slots=True)
class Request:
    """The stack to open, and how."""

    project_dir: Path
    stack: str
    state_dir: Path
    config_file: Path | None = None
    placeholder_secrets: bool = False
    added: Mapping[str, Any] = field(default_factory=dict)
    """Config that the stack file lacks, as it would be in it: placeholders of endpoints, for a run without them."""
    resources: Sequence[ResourceState] = ()
    """With placeholder secrets: the state, in place of the folder's."""

    @property
    def stack_dir(self) -> Path:
        """The folder of the stack's state, lock and passphrase."""
        return self.state_dir / "stacks" / self.stack


@dataclass(frozen=True, slots=True)
class Session:
    """An opened stack."""

    project: Project
    stack_file: StackFile
    config: Config
    store: Store


class PlaceholderCrypter:
    """Used without a passphrase: every secret decrypts to the placeholder, and none can be encrypted."""

    def encrypt(self, plaintext: str) -> str:
        del plaintext
        raise SecretsError("a run with placeholder secrets cannot encrypt a secret")

    def decrypt(self, ciphertext: str) -> str:
        del ciphertext
        return json.dumps(PLACEHOLDER)


def open_ahead(request: Request) -> None:
    """Start deriving the keys that `open_session` needs; it also reports any error in the stack."""
    try:
        stack_file = load_stack_file(load_project(request.project_dir), request.stack, request.config_file)
        salts = {s for s in (stack_file.salt, salt_of(request.stack_dir)) if s}
        if salts:
            passphrase = passphrase_of(request.stack_dir, needed=True, create=False)
        for salt in salts:
            derive_ahead(passphrase, salt)
    except (ProjectError, SecretsError, StateError, OSError):
        return


def open_session(request: Request, *, writable: bool, validated: bool = False) -> Session:
    """Open a stack. `writable` for a run that changes the state; creates a missing salt and passphrase.

    `validated` for a run of the program: its config must match the declarations in Pulumi.yaml.

    Raises ProjectError, SecretsError, StateError.
    """
    project = load_project(request.project_dir)
    stack_file = load_stack_file(project, request.stack, request.config_file)
    stack_file = replace(stack_file, config={**stack_file.config, **request.added})
    directory = request.stack_dir
    state_salt = salt_of(directory)
    if request.placeholder_secrets:
        config = _config(project, stack_file, None, validated=validated)
        store = Store(directory, PlaceholderCrypter(), salt=state_salt, writable=False)
        for resource in request.resources:
            store.snapshot.put(resource)
        return Session(project, stack_file, config, store)
    if not stack_file.salt and resolve(project, stack_file, None).secret_keys:
        raise _unsalted(stack_file)
    passphrase = passphrase_of(directory, needed=bool(stack_file.salt or state_salt), create=writable)
    salts = {s for s in (stack_file.salt, state_salt) if s}
    for each in salts:
        # If stack file and state have different salts, derive both keys at once.
        derive_ahead(passphrase, each)
    opened: dict[str, Crypter] = {}
    for each in salts:
        place = directory / STATE_FILE if each == state_salt else stack_file.path
        opened[each] = crypter_of(directory, passphrase, each, place)
    salt = state_salt or stack_file.salt
    if not salt and writable:
        made = new_crypter(passphrase)
        salt, opened[made.salt] = made.salt, made
    config = _config(project, stack_file, opened.get(stack_file.salt), validated=validated)
    store = Store(directory, opened.get(salt, _Unsalted()), salt=salt, writable=writable)
    if writable and not state_salt:
        # The journal's secrets can only be decrypted with the salt, which is in the state file.
        store.compact()
    return Session(project, stack_file, config, store)


def stack_file_crypter(request: Request, stack_file: StackFile, *, create: bool = False) -> PassphraseCrypter:
    """The crypter of a stack file's secrets; with `create`, its first one uses the state's salt or a new one.

    Raises SecretsError, StateError.
    """
    salt, place = stack_file.salt, stack_file.path
    if not salt and not create:
        raise _unsalted(stack_file)
    if not salt:
        salt, place = salt_of(request.stack_dir), request.stack_dir / STATE_FILE
    passphrase = passphrase_of(request.stack_dir, needed=bool(salt), create=create)
    return crypter_of(request.stack_dir, passphrase, salt, place) if salt else new_crypter(passphrase)


def _unsalted(stack_file: StackFile) -> SecretsError:
    return SecretsError(
        f"{stack_file.path} has secure values but no encryptionsalt: add the one that they were encrypted with"
    )


def _config(project: Project, stack_file: StackFile, crypter: Crypter | None, *, validated: bool) -> Config:
    config = resolve(project, stack_file, crypter)
    if validated:
        validate(project, stack_file, config)
    return config


class _Unsalted:
    """For a state without a salt, which cannot hold a secret."""

    def encrypt(self, plaintext: str) -> str:
        del plaintext
        raise SecretsError("the state has no salt to encrypt a secret with")

    def decrypt(self, ciphertext: str) -> str:
        del ciphertext
        raise SecretsError("the state has secrets but no salt to decrypt them with")


def salt_of(directory: Path) -> str:
    """The salt of the stack in that folder, "" if it has no state yet. Raises StateError, SecretsError."""
    path = directory / STATE_FILE
    if not path.exists():
        return ""
    try:
        state = json.loads(path.read_text())
    except ValueError as error:
        raise StateError(
            f"{path} is damaged ({error}); nothing was changed. Replace it with a copy, such as one from `stack export`"
        ) from error
    try:
        return str(state["deployment"]["secrets_providers"]["state"]["salt"])
    except (KeyError, TypeError) as error:
        raise SecretsError(f"{path} has no passphrase salt; this engine did not write it") from error


def passphrase_of(directory: Path, *, needed: bool, create: bool) -> str:
    """The passphrase of the stack in that folder: from the CLI's environment variables, or the file beside the state.

    Without one, a stack without secrets gets a new one, stored there if `create`. Raises SecretsError if `needed`.
    """
    path = directory / PASSPHRASE_FILE
    value = os.environ.get(PASSPHRASE_VARIABLE)
    if value is not None:
        return value
    if named := os.environ.get(f"{PASSPHRASE_VARIABLE}_FILE"):
        path = Path(named)
        if not path.exists():
            raise SecretsError(f"{PASSPHRASE_VARIABLE}_FILE is {path}, which does not exist")
    elif path.exists() and not passphrase_in(path):
        # An empty passphrase in the environment is intended; an empty file may be the result of a full disk.
        raise SecretsError(f"{path} is empty: write the passphrase to it, or set {PASSPHRASE_VARIABLE}")
    if path.exists():
        return passphrase_in(path)
    if needed:
        raise SecretsError(
            f"there is no passphrase for the stack: set {PASSPHRASE_VARIABLE}, write it to {path}, or preview with "
            "--placeholder-secrets"
        )
    value = randomness.token_urlsafe(24)
    if create:
        directory.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.new")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(value + "\n")
        temporary.replace(path)
    return value


def passphrase_in(path: Path) -> str:
    """The passphrase in a file. Raises SecretsError, without the file's content."""
    try:
        return path.read_text().strip()
    except OSError as error:
        raise SecretsError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SecretsError(f"{path} is not UTF-8 text") from None


def crypter_of(directory: Path, passphrase: str, salt: str, place: Path, *, origin: str = "") -> PassphraseCrypter:
    """The crypter of the salt in the file `place`, with the passphrase of the stack in that folder.

    `origin` names the source of a passphrase that is not from `passphrase_of`.

    Raises SecretsError, which names that file, the passphrase's source, and the solution.
    """
    try:
        return open_crypter(passphrase, salt)
    except WrongPassphraseError as error:
        origin = origin or _origin_of_passphrase(directory)
        raise SecretsError(f"{place}: the passphrase does not match its secrets; it comes from {origin}") from error
    except SecretsError as error:
        raise SecretsError(f"{place}: {error}") from error


def _origin_of_passphrase(directory: Path) -> str:
    """Where `passphrase_of` finds the passphrase, and how to correct a wrong one."""
    file, variable, right = directory / PASSPHRASE_FILE, PASSPHRASE_VARIABLE, RIGHT_PASSPHRASE
    unset = f", or unset the variable to use {file}" if file.exists() else ""
    if variable in os.environ:
        return f"{variable}: set it to {right}{unset}"
    if named := os.environ.get(f"{variable}_FILE"):
        return f"{named} ({variable}_FILE): write {right} to it{unset}"
    return f"{file}: write {right} to it, or set {variable}"


def default_state_dir(project_dir: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """CLOUD_CONTROLLER_STATE, or `.state` in the project."""
    named = environment.get(STATE_VARIABLE)
    return Path(named) if named else project_dir / ".state"

"""The outputs of other stacks in the same state folder: `StackReference`, as a read-only provider."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

from local.engine.stack.secrets import Crypter, SecretsError
from local.engine.stack.session import (
    PASSPHRASE_FILE,
    RIGHT_PASSPHRASE,
    PlaceholderCrypter,
    crypter_of,
    passphrase_in,
    passphrase_of,
    salt_of,
)
from local.engine.stack.state import STATE_FILE, StateError, Store
from local.plugins import urn as urns
from local.plugins.provider import (
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    ProviderError,
    ReadResult,
    UpdateRequest,
)
from local.plugins.values import PropertyMap, Value, has_secrets

PACKAGE: Final = "pulumi"
ORGANIZATION: Final = "organization"
"""The only organization of a file backend."""


class StackReferences:
    """The package `pulumi`. Each stack is opened once per run."""

    accepts_secrets = True
    supports_preview = True

    def __init__(self, stacks: Path, *, placeholder_secrets: bool = False) -> None:
        """`stacks`: the folder of all stacks; with `placeholder_secrets` no passphrase is needed."""
        self._stacks = stacks
        self._placeholder_secrets = placeholder_secrets
        self._outputs: dict[Path, PropertyMap] = {}
        self._lock = threading.Lock()

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        """Raises ProviderError for a stack that does not exist or cannot be read."""
        del urn, outputs
        name = str(inputs.get("name") or id)
        directory, project = self._locate(name)
        with self._lock:
            if directory not in self._outputs:
                self._outputs[directory] = self._read(name, directory, project)
            found = self._outputs[directory]
        secret: list[Value] = [*sorted(key for key, value in found.items() if has_secrets(value))]
        return ReadResult(id, {"name": name, "outputs": found, "secretOutputNames": secret}, inputs)

    def _locate(self, name: str) -> tuple[Path, str]:
        *qualifiers, stack = name.split("/")
        if len(qualifiers) > 2 or not stack or (qualifiers and qualifiers[0] != ORGANIZATION):
            raise ProviderError(f"{name!r} is not a valid stack name: write STACK or {ORGANIZATION}/PROJECT/STACK")
        known = sorted(found.parent.name for found in self._stacks.glob(f"*/{STATE_FILE}"))
        if stack not in known:
            raise ProviderError(f"unknown stack {name!r} (stacks in the state folder: {', '.join(known) or 'none'})")
        return self._stacks / stack, qualifiers[1] if len(qualifiers) == 2 else ""

    def _read(self, name: str, directory: Path, project: str) -> PropertyMap:
        try:
            salt = salt_of(directory)
            crypter: Crypter = (
                PlaceholderCrypter() if self._placeholder_secrets else _WhenNeeded(lambda: _open(directory, salt))
            )
            resources = Store(directory, crypter, salt=salt, writable=False).snapshot.all()
        except (SecretsError, StateError) as error:
            raise ProviderError(f"stack {name!r}: {error}") from error
        root = next((r for r in resources if r.type == urns.STACK_TYPE), None)
        if root is not None and project and urns.project_of(root.urn) != project:
            raise ProviderError(f"unknown stack {name!r}: the stack belongs to project {urns.project_of(root.urn)!r}")
        return root.outputs if root is not None else {}

    def diff(self, request: DiffRequest) -> DiffResult:
        return DiffResult(request.old_inputs != request.news)

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        """Nothing: it manages nothing."""
        del config
        return ()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        del olds, news
        _refuse(urn)

    def create(self, request: CreateRequest) -> CreateResult:
        _refuse(request.urn)

    def update(self, request: UpdateRequest) -> PropertyMap:
        _refuse(request.urn)

    def delete(self, request: DeleteRequest) -> None:
        _refuse(request.urn)

    def close(self) -> None:
        """Nothing is held open."""


def _refuse(urn: str) -> NoReturn:
    raise ProviderError(f"{urns.type_of(urn)} is read-only")


class _WhenNeeded:
    """A crypter that the first secret opens: a stack without any needs no passphrase."""

    def __init__(self, open: Callable[[], Crypter]) -> None:
        self._open = open
        self._opened: Crypter | None = None

    def encrypt(self, plaintext: str) -> str:
        del plaintext
        raise SecretsError("the state of another stack is read-only")

    def decrypt(self, ciphertext: str) -> str:
        if self._opened is None:
            self._opened = self._open()
        return self._opened.decrypt(ciphertext)


def _open(directory: Path, salt: str) -> Crypter:
    beside = directory / PASSPHRASE_FILE
    # The passphrase in the environment is the current stack's; this one may have its own file.
    if beside.exists():
        passphrase, origin = passphrase_in(beside), f"{beside}: write {RIGHT_PASSPHRASE} to it"
    else:
        passphrase, origin = passphrase_of(directory, needed=True, create=False), ""
    return crypter_of(directory, passphrase, salt, directory / STATE_FILE, origin=origin)

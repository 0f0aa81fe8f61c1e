"""Replaces a stack's state with one that `stack export`, of the CLI or of this engine, wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from local.engine.stack.form import deployment_of
from local.engine.stack.lock import StackLock
from local.engine.stack.project import load_project, load_stack_file
from local.engine.stack.secrets import Crypter, SecretsError, new_crypter, open_crypter
from local.engine.stack.session import Request, crypter_of, passphrase_of
from local.engine.stack.snapshot import Operation, Snapshot
from local.engine.stack.state import BACKUP_FILE, STATE_FILE, StateError, replace_state, snapshot_of
from local.plugins import urn as urns
from local.plugins.wire import SECRET, SIGNATURE

Json = Any

_SHOWN: Final = 10
_KNOWN: Final = frozenset({"manifest", "secrets_providers", "resources", "pending_operations", "metadata"})
_NOT_DONE: Final = {
    "viewOf": "is a view of another resource, which this engine does not support",
    "refreshBeforeUpdate": "is to be refreshed before each update, which this engine does not support",
}


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    resources: int
    warnings: tuple[str, ...]
    backup: Path | None
    """The file of the previous state."""


def import_state(request: Request, document: Json, *, force: bool = False) -> Imported:
    """Replace the stack's state with an exported one. With `force` errors are only reported.

    Raises ProjectError, SecretsError, LockedError, and StateError with every error in the state.
    """
    project = load_project(request.project_dir)
    stack_file = load_stack_file(project, request.stack, request.config_file)
    try:
        deployment = deployment_of(document)
    except ValueError as error:
        raise StateError(str(error)) from error
    wrong = list(problems(deployment, project.name, request.stack))
    if wrong and not force:
        listed = [*wrong[:_SHOWN], *([f"... and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else [])]
        raise StateError("the state cannot be imported (use --force to import it anyway):\n  " + "\n  ".join(listed))
    with StackLock(request.stack_dir, "stack import"):
        theirs = _salt_of(deployment)
        # The stack file's salt has precedence: the CLI, too, would write the state with it at its next change.
        salt = stack_file.salt or (theirs if _encrypted(deployment) else "")
        passphrase = passphrase_of(request.stack_dir, needed=bool(salt), create=True)
        reader = _reader(deployment, theirs, passphrase)
        writer = crypter_of(request.stack_dir, passphrase, salt, stack_file.path) if salt else new_crypter(passphrase)
        try:
            snapshot = snapshot_of(deployment, reader or writer)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the state is not readable: {type(error).__name__}: {error}") from error
        settled = list(_settle_creates(snapshot))
        _adopt_updates(snapshot)
        replaces = (request.stack_dir / STATE_FILE).exists()
        replace_state(request.stack_dir, snapshot, writer, writer.salt)
    backup = request.stack_dir / BACKUP_FILE if replaces else None
    return Imported(len(snapshot.resources), (*wrong, *settled, *_warnings(deployment, snapshot)), backup)


def problems(deployment: dict[str, Json], project: str, stack: str) -> Iterator[str]:
    """The errors in a state for this stack, one line each: the CLI's checks, and what would be lost."""
    manifest = deployment.get("manifest") or {}
    version = str(manifest.get("version") or "")
    if manifest.get("magic", "") != (sha256(version.encode()).hexdigest() if version else ""):
        yield "manifest: `magic` does not match `version`: the file is damaged or was edited"
    resources = deployment.get("resources") or []
    everywhere = {each.get("urn") for each in resources}
    seen: set[str] = set()
    alive: set[str] = set()
    providers: set[str] = set()
    for index, resource in enumerate(resources):
        urn, kind = resource.get("urn"), resource.get("type")
        if not urn or not kind:
            yield f"resource {index}: `{'type' if urn else 'urn'}` is missing"
            continue
        yield from _misnamed(urn, kind, project, stack)
        if resource.get("id") and not resource.get("custom"):
            yield f"{urn}: is a component but has an id"
        for what, needed in _needs(resource):
            if needed not in seen:
                place = "comes after it" if needed in everywhere else "is missing"
                yield f"{urn}: its {what} {needed} {place}"
        provider = resource.get("provider")
        if provider and provider not in providers and not resource.get("pendingReplacement"):
            yield f"{urn}: its provider {provider} is missing"
        if urns.is_provider(kind):
            providers.add(f"{urn}::{resource.get('id', '')}")
        if not resource.get("delete"):
            if urn in alive:
                yield f"{urn}: duplicate URN"
            alive.add(urn)
        seen.add(urn)
        yield from (f"{urn}: it {why}" for key, why in _NOT_DONE.items() if resource.get(key))


def _misnamed(urn: str, kind: str, project: str, stack: str) -> Iterator[str]:
    try:
        name = urns.parse(urn)
    except ValueError as error:
        yield str(error)
        return
    if (name.stack, name.project) != (stack, project):
        yield f"{urn}: belongs to stack {name.stack!r} of project {name.project!r}, not to {stack!r} of {project!r}"
    if urns.type_of(urn) != kind:
        yield f"{urn}: `type` is {kind!r}, unlike the type in the URN"


def _needs(resource: dict[str, Json]) -> Iterator[tuple[str, str]]:
    if parent := resource.get("parent"):
        yield "parent", parent
    for dependency in resource.get("dependencies") or ():
        yield "dependency", dependency
    for key, dependencies in (resource.get("propertyDependencies") or {}).items():
        yield from ((f"property {key}'s dependency", dependency) for dependency in dependencies or ())
    if owner := resource.get("deletedWith"):
        yield "deletedWith", owner


def _settle_creates(snapshot: Snapshot) -> Iterator[str]:
    """Drop the creates that the CLI has repeated: it keeps them pending, beside the resource that it then made.

    Repeating one again would replace the object that the state knows with yet another one.
    """
    live = snapshot.live()
    for number, pending in list(snapshot.pending.items()):
        urn, known = pending.resource.urn, live.get(pending.resource.urn)
        if pending.operation is Operation.CREATING and known and known.inputs == pending.resource.inputs:
            del snapshot.pending[number]
            yield (
                f"{urn}: dropped an interrupted create, because {known.id} was made after it; check the cloud for a "
                "second object, which no state knows"
            )


def _adopt_updates(snapshot: Snapshot) -> None:
    """Give the interrupted updates the id of the updated resource, which the CLI omits."""
    live = snapshot.live()
    for number, pending in list(snapshot.pending.items()):
        if pending.operation is Operation.UPDATING and (known := live.get(pending.resource.urn)):
            snapshot.pending[number] = replace(pending, resource=replace(pending.resource, id=known.id))


def _warnings(deployment: dict[str, Json], snapshot: Snapshot) -> Iterator[str]:
    if unknown := sorted(set(deployment) - _KNOWN):
        yield f"unknown to this engine and not imported: {', '.join(unknown)}"
    if snapshot.pending:
        names = ", ".join(f"{each.operation} {each.resource.urn}" for each in snapshot.pending.values())
        yield f"imported pending operations, which the next up, refresh or destroy resolves: {names}"


def _salt_of(deployment: dict[str, Json]) -> str:
    """The salt of the passphrase that encrypted the state's secrets; "" without one."""
    provider = deployment.get("secrets_providers") or {}
    if provider.get("type", "passphrase") != "passphrase":
        if _encrypted(deployment):
            raise SecretsError(
                f"its secrets provider is {provider['type']!r}, and this engine supports only a passphrase; export "
                "it with --show-secrets"
            )
        return ""
    return str((provider.get("state") or {}).get("salt", ""))


def _reader(deployment: dict[str, Json], salt: str, passphrase: str) -> Crypter | None:
    """The crypter for the state's secrets; None if there is nothing to decrypt."""
    if not _encrypted(deployment):
        return None
    if not salt:
        raise SecretsError("it has encrypted secrets, but not the salt of their passphrase")
    try:
        return open_crypter(passphrase, salt)
    except SecretsError as error:
        raise SecretsError(
            "the passphrase does not match the state's secrets; set the one that does, or export with --show-secrets"
        ) from error


def _encrypted(value: Json) -> bool:
    """Whether it contains a ciphertext."""
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return "plaintext" not in value
        return any(_encrypted(each) for each in value.values())
    return isinstance(value, list) and any(_encrypted(each) for each in value)

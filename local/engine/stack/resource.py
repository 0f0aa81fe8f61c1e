"""One resource as the state keeps it, and its JSON form, which is Pulumi's own (deployment version 3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from local.engine.stack.secrets import Crypter
from local.plugins import paths
from local.plugins.json_values import Json, as_json
from local.plugins.urn import name_of
from local.plugins.values import (
    SIMULATED,
    UNKNOWN,
    Archive,
    Asset,
    PropertyMap,
    ResourceReference,
    Secret,
    Value,
    hidden_like,
    without_secrets,
    wrapped,
)
from local.plugins.wire import ARCHIVE, ASSET, RESOURCE, SECRET, SIGNATURE, UNKNOWN_TEXT

_TIMEOUTS: Final = ("create", "update", "delete", "read")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """customTimeouts in seconds; 0 is the provider's default."""

    create: float = 0
    update: float = 0
    delete: float = 0
    read: float = 0


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A resource of the last run, or the goal of this one (then without outputs). Frozen: changes make new objects."""

    urn: str
    type: str
    custom: bool
    id: Value = ""
    """The provider's id; "" while it does not exist, UNKNOWN for a new provider instance in a preview."""
    inputs: PropertyMap = field(default_factory=dict)
    outputs: PropertyMap = field(default_factory=dict)
    external: bool = False
    """Only read (`get`): managed elsewhere, never changed or deleted."""
    import_id: str = ""
    """The id by which it was imported."""
    parent: str = ""
    provider: str = ""
    """The provider instance, as `URN::ID`; empty for components and for provider instances themselves."""
    dependencies: tuple[str, ...] = ()
    property_dependencies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    protect: bool = False
    retain_on_delete: bool = False
    deleted_with: str = ""
    replace_with: tuple[str, ...] = ()
    """The URNs whose replacement also replaces it."""
    replacement_trigger: Value = None
    """A change of this value replaces the resource; None is no value."""
    delete: bool = False
    """Already replaced, and still to be deleted."""
    pending_replacement: bool = False
    """Already deleted, and still to be recreated: the CLI leaves this when it deletes first and the create fails."""
    taint: bool = False
    """To be replaced by the next update, as `pulumi state taint` requests."""
    additional_secret_outputs: tuple[str, ...] = ()
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    delete_before_replace: bool | None = None
    hide_diffs: tuple[str, ...] = ()
    """The property paths whose differences are hidden."""
    timeouts: Timeouts = Timeouts()
    resource_hooks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of its hooks, by Pulumi's kind of hook (BeforeCreate, ..., OnError)."""
    init_errors: tuple[str, ...] = ()
    """Why it did not become ready; it exists nevertheless, and the next run updates it."""
    source_position: str = ""
    stack_trace: tuple[str, ...] = ()
    """Where the project's files register it, innermost first; in the state's form, as `source_position`."""
    created: str = ""
    modified: str = ""
    unused: PropertyMap = field(default_factory=dict)
    """Fields of a state file that this engine does not use, such as a newer CLI's; kept as they are."""

    @property
    def name(self) -> str:
        """Its name in the program."""
        return name_of(self.urn)

    @property
    def key(self) -> tuple[str, str]:
        """Identifies it within the state: a replaced resource shares its URN with its successor."""
        return (self.urn, str(self.id) if self.delete else "")

    @property
    def simulated(self) -> bool:
        """Whether it is simulated: nothing real was made."""
        return SIMULATED in self.outputs

    def requires(self) -> set[str]:
        """The URNs of all that must be created before it and deleted after it."""
        needed = {*self.dependencies, *(u for urns in self.property_dependencies.values() for u in urns)}
        if self.parent:
            needed.add(self.parent)
        if self.provider:
            needed.add(self.provider.rpartition("::")[0])
        if self.deleted_with:
            needed.add(self.deleted_with)
        needed |= {*self.replace_with}
        return needed - {self.urn}


def to_json(resource: ResourceState, crypter: Crypter) -> Json:
    """The resource as a state file holds it, secrets encrypted and empty fields omitted."""
    return _render(resource, lambda value: encode(value, crypter))


def to_plain_json(resource: ResourceState) -> Json:
    """The resource as in `stack export --show-secrets`: the same form, with secrets in plain text."""
    return _render(
        resource,
        lambda value: as_json(value, lambda secret: {SIGNATURE: SECRET, "plaintext": _plain_text(secret.value)}),
    )


def from_json(data: Json, crypter: Crypter) -> ResourceState:
    """A resource from a state file. Raises SecretsError, and KeyError for a malformed file."""
    # This engine uses the keys that are popped; the rest is kept in `extra`.
    left = dict(data)
    timeouts = left.pop("customTimeouts", None) or {}
    return ResourceState(
        urn=left.pop("urn"),
        type=left.pop("type"),
        custom=bool(left.pop("custom", False)),
        id=left.pop("id", ""),
        inputs=decode(left.pop("inputs", None) or {}, crypter),
        outputs=decode(left.pop("outputs", None) or {}, crypter),
        external=bool(left.pop("external", False)),
        import_id=left.pop("importID", ""),
        parent=left.pop("parent", ""),
        provider=left.pop("provider", ""),
        dependencies=_texts(left, "dependencies"),
        property_dependencies={k: tuple(v or ()) for k, v in (left.pop("propertyDependencies", None) or {}).items()},
        protect=bool(left.pop("protect", False)),
        retain_on_delete=bool(left.pop("retainOnDelete", False)),
        deleted_with=left.pop("deletedWith", ""),
        replace_with=_texts(left, "replaceWith"),
        replacement_trigger=decode(left.pop("replacementTrigger", None), crypter),
        # Older states of this engine hold a path as a list of its steps.
        hide_diffs=tuple(p if isinstance(p, str) else paths.write(p) for p in left.pop("hideDiff", None) or ()),
        delete=bool(left.pop("delete", False)),
        pending_replacement=bool(left.pop("pendingReplacement", False)),
        taint=bool(left.pop("taint", False)),
        additional_secret_outputs=_texts(left, "additionalSecretOutputs"),
        ignore_changes=_texts(left, "ignoreChanges"),
        replace_on_changes=_texts(left, "replaceOnChanges"),
        timeouts=Timeouts(**{k: float(v) for k, v in timeouts.items() if k in _TIMEOUTS}),
        resource_hooks={k: tuple(v) for k, v in (left.pop("resourceHooks", None) or {}).items() if v},
        init_errors=_texts(left, "initErrors"),
        source_position=left.pop("sourcePosition", ""),
        stack_trace=tuple(frame.get("sourcePosition", "") for frame in left.pop("stackTrace", None) or ()),
        created=left.pop("created", ""),
        modified=left.pop("modified", ""),
        unused=decode(left, crypter),
    )


def _texts(data: dict[str, Json], key: str) -> tuple[str, ...]:
    return tuple(data.pop(key, None) or ())


def encode(value: Value, crypter: Crypter) -> Json:
    """A value as a state file holds it."""
    return as_json(value, lambda secret: {SIGNATURE: SECRET, "ciphertext": crypter.encrypt(_plain_text(secret.value))})


def decode(value: Json, crypter: Crypter) -> Value:
    """A value from a state file; the inverse of `encode`."""
    if isinstance(value, list):
        return [decode(v, crypter) for v in value]
    if not isinstance(value, dict):
        return UNKNOWN if value == UNKNOWN_TEXT else value
    signature = value.get(SIGNATURE)
    if signature == SECRET:
        # An export with --show-secrets has the plain text.
        text = str(value["plaintext"]) if "plaintext" in value else crypter.decrypt(str(value["ciphertext"]))
        # The CLI may nest secrets within a secret; here the whole is one.
        return Secret(without_secrets(decode(json.loads(text), crypter)))
    if signature == RESOURCE:
        return ResourceReference(value["urn"], value.get("id"), value.get("packageVersion", ""))
    if signature in (ASSET, ARCHIVE):
        properties = tuple((k, decode(v, crypter)) for k, v in value.items() if k != SIGNATURE)
        return Asset(properties) if signature == ASSET else Archive(properties)
    return {k: decode(v, crypter) for k, v in value.items()}


_NO_SECRETS: Final = "a Secret never holds a Secret"


def _plain_text(value: Value) -> str:
    def refuse(_: Secret) -> Json:
        raise AssertionError(_NO_SECRETS)

    return json.dumps(as_json(value, refuse), separators=(",", ":"))


def _render(resource: ResourceState, value: Callable[[Value], Json]) -> Json:
    r = resource
    timeouts = {k: v for k in _TIMEOUTS if (v := getattr(r.timeouts, k))}
    optional: dict[str, Json] = {
        "delete": r.delete,
        "pendingReplacement": r.pending_replacement,
        "taint": r.taint,
        "id": UNKNOWN_TEXT if r.id is UNKNOWN else r.id,
        "type": r.type,
        "inputs": value(_sorted(r.inputs)),
        "outputs": value(_sorted(r.outputs)),
        "parent": r.parent,
        "external": r.external,
        "importID": r.import_id,
        "protect": r.protect,
        "dependencies": list(r.dependencies),
        "initErrors": list(r.init_errors),
        "provider": r.provider,
        "propertyDependencies": {k: list(v) for k, v in sorted(r.property_dependencies.items())},
        "additionalSecretOutputs": list(r.additional_secret_outputs),
        "customTimeouts": timeouts,
        "retainOnDelete": r.retain_on_delete,
        "deletedWith": r.deleted_with,
        "replaceWith": list(r.replace_with),
        "hideDiff": list(r.hide_diffs),
        "created": r.created,
        "modified": r.modified,
        "sourcePosition": r.source_position,
        "stackTrace": [{"sourcePosition": position} if position else {} for position in r.stack_trace],
        "ignoreChanges": list(r.ignore_changes),
        "replaceOnChanges": list(r.replace_on_changes),
        "resourceHooks": {k: list(v) for k, v in sorted(r.resource_hooks.items())},
    }
    head: dict[str, Json] = {"urn": r.urn, "custom": r.custom}
    kept = value(r.unused) if r.unused else {}
    if r.replacement_trigger is not None:
        # Kept even if false or empty, which are values like any other.
        head["replacementTrigger"] = value(r.replacement_trigger)
    return kept | head | {k: v for k, v in optional.items() if v not in (None, "", False, [], {})}


def _sorted(values: PropertyMap) -> PropertyMap:
    return dict(sorted(values.items()))


def with_secret_outputs(resource: ResourceState, *, from_inputs: bool) -> ResourceState:
    """The resource with the outputs wrapped that the program calls secret or, `from_inputs`, whose inputs are.

    A provider that takes plain values also returns secret inputs as plain outputs.
    """
    outputs = hidden_like(resource.outputs, resource.inputs) if from_inputs else resource.outputs
    named = resource.additional_secret_outputs
    return replace(resource, outputs={k: wrapped(v) if k in named else v for k, v in outputs.items()})

"""The interface of a resource provider: Pulumi's provider protocol over plain values.

Implementations: `kubernetes/` (server-side apply), `recorder.py` (only simulates), and those of clouds that a simulator
on this machine has (`local.clouds.LocalCloud`). `servicer.py` serves any of them as a plugin.
A provider is asked from several threads at once. Secrets are handed over wrapped (`Secret`). What a provider without
`accepts_secrets` answers is plain: its caller wraps an output again whose input of the same name was secret.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from local.plugins.values import PropertyMap

Report = Callable[[str], None]
"""Report in one line what the provider is doing or waiting for."""


class ProviderError(Exception):
    """The operation failed; the message is for people. Nothing was made, unless `PartialFailure`.

    It may quote a secret input: the caller masks it.
    """


class PartialFailure(ProviderError):
    """The object exists (`id`, `outputs` are valid) but did not become ready; the state keeps it, the run fails."""

    def __init__(self, message: str, id: str, outputs: PropertyMap) -> None:
        super().__init__(message)
        self.id = id
        self.outputs = outputs


class OutcomeUnknown(ProviderError):
    """The provider was lost during the operation: its outcome is unknown, and it stays pending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest:
    """A resource from the state, and its new inputs. `ignore_changes` are property paths."""

    urn: str
    id: str
    old_inputs: PropertyMap
    old_outputs: PropertyMap
    news: PropertyMap
    ignore_changes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest(DiffRequest):
    """An update to carry out. Timeout in seconds, 0 for the provider's default."""

    preview: bool
    timeout: float
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest:
    """A resource to create. Timeout in seconds, 0 for the provider's default."""

    urn: str
    inputs: PropertyMap
    preview: bool
    timeout: float
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest:
    """A resource to delete. Timeout in seconds, 0 for the provider's default."""

    urn: str
    id: str
    inputs: PropertyMap
    outputs: PropertyMap
    timeout: float
    report: Report


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """An invalid input. `property` may be empty."""

    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Inputs as the provider completed them, and the invalid ones."""

    inputs: PropertyMap
    failures: tuple[CheckFailure, ...] = ()


class DiffKind(StrEnum):
    """How one property differs, in the terms of Pulumi's detailed diff."""

    ADD = "add"
    ADD_REPLACE = "add-replace"
    DELETE = "delete"
    DELETE_REPLACE = "delete-replace"
    UPDATE = "update"
    UPDATE_REPLACE = "update-replace"

    @property
    def replacing(self) -> DiffKind:
        """The same difference, but requiring a replacement."""
        return self if self.endswith("-replace") else DiffKind(f"{self}-replace")


@dataclass(frozen=True, slots=True)
class PropertyDiff:
    """One differing property; `input_diff`: it differs between old and new inputs, not in outputs."""

    kind: DiffKind
    input_diff: bool = True


@dataclass(frozen=True, slots=True)
class DiffResult:
    """`changed` None means "compare the inputs yourself". `replaces` and `detailed` are keyed by property path."""

    changed: bool | None
    replaces: tuple[str, ...] = ()
    diffs: tuple[str, ...] = ()
    detailed: dict[str, PropertyDiff] = field(default_factory=dict)
    delete_before_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateResult:
    """A created object; in a preview `id` is empty and outputs may hold UNKNOWN."""

    id: str
    outputs: PropertyMap


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The current object; `id` None: it is gone. `inputs` None: the provider returns none, keep the old ones."""

    id: str | None
    outputs: PropertyMap
    inputs: PropertyMap | None = None


@runtime_checkable
class Functions(Protocol):
    """A provider that also has functions."""

    def invoke(self, token: str, args: PropertyMap) -> PropertyMap:
        """The function's answer. Raises ProviderError, also for an unknown function."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """A provider that waits for its objects to become ready."""

    def interrupt(self) -> None:
        """End all waits: the objects exist and are not ready. Pulumi's Cancel."""
        ...


class Checker(Protocol):
    """What a provider says of inputs, without changing anything."""

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        """Complete and validate inputs. `olds` are the old inputs, {} on create."""
        ...

    def diff(self, request: DiffRequest) -> DiffResult: ...


class Provider(Checker, Protocol):
    """One configured provider instance."""

    accepts_secrets: bool

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        """The changed settings with which an instance of this configuration would manage another place.

        What this one manages must then be replaced. Pulumi's DiffConfig.
        """
        ...

    def create(self, request: CreateRequest) -> CreateResult:
        """Raises ProviderError."""
        ...

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult: ...

    def update(self, request: UpdateRequest) -> PropertyMap:
        """The new outputs. Raises ProviderError."""
        ...

    def delete(self, request: DeleteRequest) -> None:
        """Already gone is a success. Raises ProviderError."""
        ...

    def close(self) -> None:
        """Release processes and connections."""
        ...


ProviderFactory = Callable[[PropertyMap], Provider]
"""Makes a provider from its configuration. Raises ProviderError."""

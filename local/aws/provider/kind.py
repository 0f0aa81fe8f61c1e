"""The interface of one type of resource; `provider.py` has what all types share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from local.aws.provider.api import Api, AwsError, Deadline
from local.plugins.provider import OutcomeUnknown, ProviderError
from local.plugins.values import PropertyMap, Value

TOKEN: Final = "simulated/create"
"""The tag that identifies the create of an object, so that a repeated create finds it. Never in outputs."""

Tags = list[dict[str, str]] | Mapping[str, str] | None
"""Tags in the forms of AWS's APIs: EKS's is a map, most are a list."""


class NotReady(ProviderError):
    """The object `id` exists but is not in its desired state yet."""

    def __init__(self, message: str, id: str) -> None:
        super().__init__(message)
        self.id = id


@contextmanager
def completing(id: str) -> Iterator[None]:
    """Raises NotReady for a failure inside that leaves an incomplete object."""
    try:
        yield
    except OutcomeUnknown:
        raise
    except ProviderError as error:
        raise NotReady(str(error), id) from None


@dataclass(frozen=True, slots=True)
class Creation:
    """A create: the desired state, and the token that distinguishes it from any other."""

    inputs: PropertyMap
    token: str
    deadline: Deadline

    @property
    def tags(self) -> dict[str, str]:
        """The tags of the object, with the token's."""
        return {**self.inputs.get("tags", {}), TOKEN: self.token}


@dataclass(frozen=True, slots=True)
class Change:
    """An update in place: old and new, and which inputs differ."""

    olds: PropertyMap
    news: PropertyMap
    changed: frozenset[str]
    deadline: Deadline


class Kind(ABC):
    """One type of resource; inputs and outputs are plain, with pulumi-aws's names."""

    type: ClassVar[str]
    inputs: ClassVar[frozenset[str]]
    """The supported inputs; others are rejected by name."""
    required: ClassVar[frozenset[str]] = frozenset()
    replaces: ClassVar[frozenset[str]] = frozenset()
    """The inputs whose change requires a replacement."""
    defaults: ClassVar[Mapping[str, Value]] = {}
    autonamed: ClassVar[bool] = False
    """Whether it gets a `name` with random letters if the program gives none."""
    taggable: ClassVar[bool] = True
    documents: ClassVar[frozenset[str]] = frozenset()
    """Inputs that are JSON texts: equal documents are no difference."""
    write_only: ClassVar[frozenset[str]] = frozenset({"namePrefix"})
    """Inputs that AWS does not return; any other input that `read` does not find is absent."""
    delete_first: ClassVar[bool] = False
    """Whether the old one must be deleted before its replacement can be made."""
    within: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The fields that AWS adds within an object input, by input."""
    moving: ClassVar[frozenset[str]] = frozenset()
    """Outputs that an update of more than tags may change: unknown in its preview."""
    timeout: ClassVar[float] = 600

    def replaced_by(self, olds: PropertyMap, news: PropertyMap) -> frozenset[str]:
        """The inputs whose change requires a replacement, where that depends on values."""
        del olds, news
        return self.replaces

    @abstractmethod
    def make(self, api: Api, creation: Creation) -> str:
        """Make the object, or find the one that this create made; returns its id. Raises ProviderError, NotReady."""

    @abstractmethod
    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        """The current outputs; None if it is gone. `known`: its inputs or outputs as far as they are known."""

    @abstractmethod
    def change(self, api: Api, id: str, change: Change) -> None:
        """Change the object in place."""

    @abstractmethod
    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        """Delete the object and wait until it is gone. Raises AwsError with `missing` if it is gone already."""


def present(**values: Any) -> PropertyMap:
    """The values that are not None."""
    return {key: value for key, value in values.items() if value is not None}


def tag_list(tags: Mapping[str, Any]) -> list[dict[str, str]]:
    """Tags in the form of most of AWS's APIs."""
    return [{"Key": key, "Value": str(value)} for key, value in sorted(tags.items())]


def tag_outputs(tags: Tags) -> PropertyMap:
    """The tags as outputs, without AWS's own and the token."""
    own = {k: v for k, v in _pairs(tags).items() if k != TOKEN and not k.startswith("aws:")}
    return {"tags": own, "tagsAll": own} if own else {"tagsAll": {}}


def tag_changes(olds: PropertyMap, news: PropertyMap) -> tuple[dict[str, str], list[str]]:
    """The tags to set, and the keys to remove."""
    before, after = olds.get("tags") or {}, news.get("tags") or {}
    return {k: v for k, v in after.items() if before.get(k) != v}, sorted(before.keys() - after.keys())


def find_or_make(make: Callable[[], str], find: Callable[[], str | None], exists: str) -> str:
    """Make an object with a unique name, or find the one that this create made already.

    `exists`: the prefix of AWS's code for a name in use. Raises AwsError if another create made it.
    """
    try:
        return make()
    except AwsError as error:
        if not error.code.startswith(exists):
            raise
        found = find()
        if found is None:
            raise
        return found


def made_by(tags: Tags, token: str) -> bool:
    """Whether the tags are of an object that the create with that token made."""
    return _pairs(tags).get(TOKEN) == token


def pascal(value: Any, renamed: Mapping[str, str]) -> Any:
    """Properties in the API's spelling (`volumeSize` is `VolumeSize`); `renamed` are the exceptions."""
    if isinstance(value, dict):
        return {renamed.get(k) or k[0].upper() + k[1:]: pascal(_boolean(v), renamed) for k, v in value.items()}
    return [pascal(item, renamed) for item in value] if isinstance(value, list) else value


def camel(value: Any, renamed: Mapping[str, str]) -> Any:
    """The API's answer in the spelling of properties: the reverse."""
    back = {api: ours for ours, api in renamed.items()}
    if isinstance(value, dict):
        return {back.get(k) or k[0].lower() + k[1:]: camel(v, renamed) for k, v in value.items()}
    return [camel(item, renamed) for item in value] if isinstance(value, list) else value


def _pairs(tags: Tags) -> Mapping[str, str]:
    return tags if isinstance(tags, Mapping) else {tag["Key"]: tag["Value"] for tag in tags or []}


def _boolean(value: Any) -> Any:
    """A boolean that pulumi-aws has as a string."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value

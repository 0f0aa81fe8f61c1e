"""What a cloud's resources cost and allow: descriptors, found by entry points of `cloud_stacks.clouds`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cloud_controller.registry import Registry


@dataclass(frozen=True, slots=True)
class Billed:
    """A type of resource that costs by the hour. `size` and `count`: the paths of those inputs."""

    what: str
    size: tuple[str | int, ...] = ()
    count: tuple[str | int, ...] = ()
    """Empty: the resource is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackCloud:
    """One cloud. Its resources are named by Pulumi's types."""

    name: str
    billed: Mapping[str, Billed]
    documents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The inputs that hold policy documents, by type."""
    attached: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By type, the inputs that name a policy and who gets it."""


CLOUDS: Final = Registry(__name__, StackCloud)

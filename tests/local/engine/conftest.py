"""Shared by the engine's tests: a stack in a temporary folder over the cloud in memory, recorded runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import pytest

from local.plugins.provider import PartialFailure, ProviderError
from local.plugins.values import UNKNOWN
from tests.local.engine.recordings import PASSPHRASE
from tests.local.engine.sample_program import Ran, Sample, replay
from tests.local.engine.stack_under_test import StackUnderTest


class Thing(pulumi.CustomResource):
    """A resource of the in-memory cloud. `size` changes in place, `kind` replaces, `address` is an output."""

    address: pulumi.Output[str]
    size: pulumi.Output[Any]

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None, **properties: Any) -> None:
        super().__init__("memory:index:Thing", name, {"address": None, "size": None, **properties}, opts)


class Group(pulumi.ComponentResource):
    """A component."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None, **properties: Any) -> None:
        super().__init__("test:index:Group", name, properties, opts)


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackUnderTest:
    """An empty stack."""
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    return StackUnderTest(tmp_path)


@dataclass(frozen=True)
class Kit:
    """The tests' helpers: tests are separate modules and cannot import this file."""

    Thing: type[Thing] = Thing
    Group: type[Group] = Group
    UNKNOWN: Any = UNKNOWN
    ProviderError: type[ProviderError] = ProviderError
    PartialFailure: type[PartialFailure] = PartialFailure


@pytest.fixture
def kit() -> Kit:
    """Resource classes for programs."""
    return Kit()


@pytest.fixture(scope="session")
def sample_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Every recording of the real CLI, with a run of the same program by the engine's command line."""
    # The recorded providers must be gone before other tests of this process run.
    with pytest.MonkeyPatch.context() as monkeypatch:
        return replay(tmp_path_factory.mktemp("sample"), monkeypatch)


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sample]:
    """The sample program, in a stack that is empty."""
    yield Sample(tmp_path, monkeypatch)
    sys.modules.pop("machines", None)

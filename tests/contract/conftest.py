"""The fixture `harness`: each cloud in turn, as its module `of_NAME.py` runs it.

A module has `running(request)`, which yields a `Harness`, and `OFFERS`, the parts of the interface that the cloud has. A
test module names in `PART` the part that its tests need.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cloud_controller.clouds.aws.conftest import _account as _account
from tests.cloud_controller.clouds.aws.conftest import _credentials as _credentials
from tests.cloud_controller.clouds.aws.conftest import _moto as _moto
from tests.cloud_controller.clouds.aws.conftest import _network as _network
from tests.cloud_controller.clouds.aws.conftest import account as account
from tests.cloud_controller.clouds.conftest import _server as _server
from tests.cloud_controller.clouds.conftest import site as site
from tests.contract.harness import Harness

NAMES = sorted(path.stem.removeprefix("of_") for path in Path(__file__).parent.glob("of_*.py"))


def of(name: str) -> Any:
    """The module of this cloud."""
    return importlib.import_module(f"tests.contract.of_{name}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on every cloud that offers what it is about."""
    if "harness" in metafunc.fixturenames:
        part = metafunc.module.PART
        metafunc.parametrize("harness", [name for name in NAMES if part in of(name).OFFERS], indirect=True)


@pytest.fixture
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """A fresh account of this cloud."""
    yield from of(request.param).running(request)

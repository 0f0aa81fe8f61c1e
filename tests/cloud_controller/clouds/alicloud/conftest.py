"""The stand-in of Alibaba Cloud: an account of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.alicloud.cloud import AliCloud
from local.standin.server import Application, serving
from tests.cloud_controller.clouds.alicloud.account import Account


@pytest.fixture
def alicloud() -> Account:
    """A fresh account, in this process."""
    return Account()


@pytest.fixture(scope="session")
def _alicloud_server() -> Iterator[tuple[Application, str]]:
    first = AliCloud()
    application = Application(first, first.metadata)
    with serving(application) as url:
        yield application, url


@pytest.fixture
def alicloud_url(_alicloud_server: tuple[Application, str], alicloud: Account) -> str:
    """The URL under which the account is served."""
    application, url = _alicloud_server
    application._standin, application._side = alicloud.standin, alicloud.standin.metadata
    return url

"""The stand-in of Alibaba Cloud: an account of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.alicloud.cloud import AliCloud
from local.http_server import Application, config, serving
from local.standin.server import answering
from tests.cloud_controller.clouds.alicloud.account import Account


@pytest.fixture
def alicloud() -> Account:
    """A fresh account, in this process."""
    return Account()


@pytest.fixture(scope="session")
def _alicloud_server() -> Iterator[tuple[Application, str]]:
    first = AliCloud()
    application = Application(answering(first, first.metadata))
    with serving(config(application, "127.0.0.1")) as url:
        yield application, url


@pytest.fixture
def alicloud_url(_alicloud_server: tuple[Application, str], alicloud: Account) -> str:
    """The URL under which the account is served."""
    application, url = _alicloud_server
    application.answer = answering(alicloud.standin, alicloud.standin.metadata)
    return url

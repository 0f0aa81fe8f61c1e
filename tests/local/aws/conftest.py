"""A site of AWS for tests, and its owner's clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from local.aws import account
from local.aws.site import AwsSite

REGION = "eu-central-1"


def client(site: AwsSite, service: str, key: tuple[str, str] | None = None) -> Any:
    """A boto3 client without retries, with the site's key or another."""
    return account.client(site.endpoint, REGION, *(key or site.credentials), service)


@pytest.fixture(scope="module")
def aws_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsSite]:
    """A site that is up, for a module of tests."""
    site = AwsSite(tmp_path_factory.mktemp("aws"), "test", REGION)
    site.up()
    yield site
    site.down()

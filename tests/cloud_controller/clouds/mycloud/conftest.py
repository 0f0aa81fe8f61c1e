"""mycloud with a data plane that works by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.cloud_controller.clouds.mycloud.data_plane import at_work

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite


@pytest.fixture
def data_plane(site: MyCloudSite) -> Iterator[None]:
    """What mycloud has accepted, it finishes by itself."""
    with at_work(site):
        yield

"""mycloud's API in process, with nothing behind it: no control plane, no machine, no data plane."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from local.addresses import AddressBlock
from local.mycloud.context import Context
from local.mycloud.models.compute import Cluster
from local.mycloud.store import Store
from tests.local.mycloud.api_calls import TOKEN, client


class FakeKubeconfigs:
    def kubeconfig(self, cluster: Cluster, ttl: timedelta) -> str:
        return f"kubeconfig of {cluster.id} for {ttl.total_seconds():g} s"


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    store = Store(tmp_path / "mycloud.db")
    yield Context(AddressBlock(32), store, TOKEN, FakeKubeconfigs(), first_port=1024)
    store.close()


@pytest.fixture
def api(context: Context) -> Iterator[TestClient]:
    with client(context) as api:
        yield api

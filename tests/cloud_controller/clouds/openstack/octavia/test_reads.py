"""What Octavia's lists leave out may exist all the same."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud_errors import NotFound
from cloud_controller.clouds.openstack.octavia.reads import Reads


class Api:
    """One load balancer, which no list shows."""

    def list(self, _service: str, _path: str, _key: str, **_query: Any) -> list[dict[str, Any]]:
        return []

    def get(self, _service: str, path: str) -> dict[str, Any]:
        if not path.endswith("/there"):
            raise NotFound(path)
        return {"loadbalancer": {"id": "there", "provisioning_status": "ACTIVE", "tags": []}}


@pytest.mark.parametrize("others", [[], ["a", "b", "c", "d"]])
def test_a_load_balancer_that_a_list_lacks_is_gone_only_if_its_own_read_says_so(others: list[str]) -> None:
    client: Any = Api()

    found = Reads(client, "c-1", lambda _: None).read((), ["there", *others])

    assert [each.view["id"] for each in found] == ["there"]

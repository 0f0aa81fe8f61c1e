"""A load balancer's own security group goes with it, whatever lists show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloud_controller.clouds.alicloud.nlb.own_group import OwnGroups
from cloud_controller.clouds.common.cache import Cache


class Api:
    """An account whose lists do not show yet what is created."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    def call(self, _product: str, action: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        if action == "DeleteSecurityGroup":
            self.deleted.append(parameters["SecurityGroupId"])
        return {"SecurityGroupId": "sg-1"}

    def pages(self, *_: object) -> list[dict[str, Any]]:
        return []


def test_a_group_that_lists_do_not_show_yet_is_deleted_with_its_load_balancer() -> None:
    api = Api()
    groups = OwnGroups(api, "vpc-1", Cache())
    groups.put("nlb-1", ["10.0.0.0/8"], {}, dual_stack=False)

    groups.delete("nlb-1")

    assert api.deleted == ["sg-1"]

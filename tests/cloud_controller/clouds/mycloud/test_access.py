"""The token's rights are checked once, before anything is done, by what the chosen controllers will ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloud_controller.cloud import AccessDenied
from cloud_controller.clouds.mycloud.cloud import MyCloud
from cloud_controller.clouds.mycloud.config import Config
from cloud_controller.controller_names import NAMES

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite


def with_rights(site: MyCloudSite, *operations: str) -> MyCloud:
    token = site.issue_token(operations=["POST /v1/access:check", "GET /v1/clusters/*", *operations])
    return MyCloud(Config(site.endpoint, token, site.cluster["id"]))


def test_the_sites_own_token_may_do_everything(site: MyCloudSite) -> None:
    site.cloud.check_access(NAMES)


def test_a_right_that_is_missing_is_named_with_the_controller_that_needs_it(site: MyCloudSite) -> None:
    cloud = with_rights(site, "GET *", "POST /v1/route_tables/*:batch_create")

    with pytest.raises(AccessDenied) as refused:
        cloud.check_access(["node", "route"])

    table = site.network["route_table_id"]
    assert f"does not allow POST /v1/route_tables/{table}/routes:batch_delete" in str(refused.value)
    assert "batch_create" not in str(refused.value)
    assert "(needed by route)" in str(refused.value)


def test_what_no_chosen_controller_does_is_not_asked_for(site: MyCloudSite) -> None:
    with_rights(site, "GET /v1/machines*").check_access(["node", "node-lifecycle"])


def test_a_plan_needs_rights_to_read_alone(site: MyCloudSite) -> None:
    cloud = with_rights(site, "GET *")

    cloud.check_access(NAMES, read_only=True)
    with pytest.raises(AccessDenied, match="needed by service, route, volume"):
        cloud.check_access(NAMES)


def test_a_token_that_may_not_even_see_the_cluster_is_told_so(site: MyCloudSite) -> None:
    cloud = MyCloud(Config(site.endpoint, site.issue_token(operations=[]), site.cluster["id"]))

    with pytest.raises(AccessDenied, match="GET /v1/clusters"):
        cloud.check_access(["node"])


def test_the_rights_that_a_token_lacks_can_be_listed(site: MyCloudSite) -> None:
    cloud = with_rights(site, "GET *", "POST /v1/route_tables/*:batch_create")

    table = site.network["route_table_id"]
    assert cloud.lacking_rights(["node", "route"]) == [f"POST /v1/route_tables/{table}/routes:batch_delete"]
    assert site.cloud.lacking_rights(NAMES) == []

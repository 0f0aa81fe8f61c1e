"""A token in a file is read again when the cloud stops to accept the one that was read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloud_controller.cloud import AccessDenied, InvalidConfiguration
from cloud_controller.clouds.mycloud.cloud import MyCloud
from cloud_controller.clouds.mycloud.config import parse

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite


def with_token_file(site: MyCloudSite, path: Path) -> MyCloud:
    text = f"[Global]\nendpoint = {site.endpoint}\ntoken-file = {path}\ncluster-id = {site.cluster['id']}\n"
    return MyCloud(parse(text))


def test_a_token_that_expired_is_replaced_by_the_files_new_one_without_a_restart(
    site: MyCloudSite, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("expired\n")
    cloud = with_token_file(site, path)
    with pytest.raises(AccessDenied, match="rejected the token"):
        cloud.load_balancers.read()

    path.write_text(f"{site.token}\n")

    assert cloud.load_balancers.read() == []


def test_a_token_file_that_went_away_is_told_by_its_path(site: MyCloudSite, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("expired\n")
    cloud = with_token_file(site, path)
    path.unlink()

    with pytest.raises(InvalidConfiguration, match=r"token-file: could not read the file"):
        cloud.load_balancers.read()

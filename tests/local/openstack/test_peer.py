"""One set of services serves all users of a folder, and ends with the last of them."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from local.openstack.peer import shared
from local.waiting import wait_until

SECONDS = 60.0


@pytest.mark.integration
def test_users_of_a_folder_share_services_that_end_with_the_last(tmp_path: Path) -> None:
    with shared(tmp_path) as first:
        with shared(tmp_path) as second:
            assert second.pids == first.pids
        assert first.admin.get("network", "networks") == {"networks": []}

    assert wait_until(lambda: not any(psutil.pid_exists(pid) for pid in first.pids.values()), SECONDS)
    assert wait_until(lambda: not (tmp_path / "state").exists(), SECONDS)


@pytest.mark.integration
def test_what_is_kept_is_there_the_next_time(tmp_path: Path) -> None:
    with shared(tmp_path, keep=True) as first:
        made = first.admin.post("network", "networks", {"network": {"name": "kept"}})["network"]
    assert wait_until(lambda: not any(psutil.pid_exists(pid) for pid in first.pids.values()), SECONDS)

    with shared(tmp_path, keep=True) as second:
        # As after an hour, when Keystone's tokens end.
        second.admin._token = "expired"
        assert [each["id"] for each in second.admin.get("network", "networks")["networks"]] == [made["id"]]

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

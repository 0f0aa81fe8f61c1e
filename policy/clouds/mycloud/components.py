"""What components hold of the checklist on mycloud, where the daemon is seen running."""

from __future__ import annotations

from typing import Final

from policy.owners import Component

_NOBODY: Final = (
    Component(
        "cloud_controller.daemon",
        "seen to work as nobody, without capabilities, on a read-only filesystem",
        "tests/cloud_controller/clouds/mycloud/test_cloud_commands_control_plane.py"
        "::test_the_daemon_works_as_nobody_without_capabilities_and_without_a_file_that_it_could_write",
    ),
)

COMPONENTS: Final = {
    "11.3.2": (
        Component(
            "cloud_controller.clouds.mycloud",
            "a daemon takes a new token from its file, without a restart",
            "tests/crash/test_faults.py::test_an_expired_token_stops_it_only_until_the_file_has_a_new_one",
        ),
    ),
    "11.3.9": _NOBODY,
    "11.3.10": _NOBODY,
}
"""By line. mycloud has no record of its API's calls (11.3.6), and no pods with roles (11.3.1)."""

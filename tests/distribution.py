"""Which tests run on one worker, one after the other, and in which order they start.

A unit is a file, or the files that share what each worker would otherwise start, and let idle, for itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.integration import MARK

CONTROL_PLANE = "the control plane of tests/cloud_controller"
CRASH_ENVIRONMENT = "the environment of tests/crash"
STACK = "the stack of tests/e2e"
PROVIDER = "the API server of the Kubernetes provider's tests"
UNITS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "tests/cloud_controller/clouds/mycloud/test_build_bad_services_control_plane.py",
            "tests/cloud_controller/clouds/mycloud/test_cloud_commands_control_plane.py",
            "tests/cloud_controller/clouds/mycloud/test_plan_services_control_plane.py",
            "tests/cloud_controller/clouds/mycloud/test_readiness_gates_control_plane.py",
            "tests/cloud_controller/clouds/mycloud/test_volumes_control_plane.py",
            "tests/cloud_controller/controllers/service/test_checkpoint_in_a_cluster.py",
            "tests/cloud_controller/daemon/test_manager_control_plane.py",
            "tests/cloud_controller/doctor/test_rights_control_plane.py",
            "tests/cloud_controller/kube/test_client_control_plane.py",
            "tests/cloud_controller/test_fake_kubernetes.py",
            "tests/cloud_controller/test_manifests_control_plane.py",
            "tests/cloud_controller/test_readiness_policy_control_plane.py",
            "tests/cloud_controller/test_service_admission_control_plane.py",
        ),
        CONTROL_PLANE,
    ),
    **dict.fromkeys(
        (
            "tests/crash/test_crash_points.py",
            "tests/crash/test_faults.py",
            "tests/crash/test_two_managers.py",
            "tests/crash/test_volume_crash_points.py",
        ),
        CRASH_ENVIRONMENT,
    ),
    **dict.fromkeys(
        (
            "tests/e2e/test_pulumi_operations.py",
            "tests/e2e/test_readiness_gates.py",
            "tests/e2e/test_service_changes.py",
            "tests/e2e/test_traffic.py",
            "tests/e2e/test_undeclared.py",
        ),
        STACK,
    ),
    **dict.fromkeys(
        (
            "tests/local/plugins/kubernetes/test_kubernetes_beside_pulumis.py",
            "tests/local/plugins/kubernetes/test_kubernetes_provider.py",
            "tests/local/plugins/kubernetes/test_kubernetes_with_pulumi.py",
            "tests/local/plugins/kubernetes/test_planted_faults.py",
        ),
        PROVIDER,
    ),
}
"""By file, where that is not a unit of its own."""

OPENSTACK = "the services of OpenStack"
"""All tests of them but the contract suite's: each answers one request at a time, so more workers would wait."""
OPENSTACK_CONTRACT = "the contract suite at the services of OpenStack"
_OF_OPENSTACK = (
    "tests/cloud_controller/clouds/openstack/",
    "tests/components/clouds/openstack/test_openstack_real.py",
)

SHARED: Mapping[str, tuple[str, str]] = {
    CONTROL_PLANE: ("control_plane", "tests/cloud_controller"),
    CRASH_ENVIRONMENT: ("environment", "tests/crash"),
    STACK: ("shared_folder", "tests/e2e"),
    PROVIDER: ("control_plane", "tests/local/plugins/kubernetes"),
}
"""By unit: the session's fixture that it shares, and the folder of its conftest."""

SECONDS = 300
"""What a test may take unless it says so: `timeout` in pyproject.toml."""


def file_of(nodeid: str) -> str:
    """Its file, from the repository's root."""
    return nodeid.partition("::")[0]


def unit_of(nodeid: str) -> str:
    """The unit of a test: its file's, or one of OpenStack's."""
    file = file_of(nodeid)
    if file.startswith("tests/contract/") and nodeid.partition("[")[2].startswith("openstack"):
        return OPENSTACK_CONTRACT
    if file.startswith(_OF_OPENSTACK):
        return OPENSTACK
    return UNITS.get(file, file)


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # its base is not typed
    """Gives a worker one unit after another."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


_shared: dict[str, pytest.FixtureDef[Any]] = {}
"""By unit: what its tests so far have used."""


def end_what_was_shared(item: pytest.Item, following: pytest.Item | None) -> None:
    """After a unit's last test: otherwise it idles until the session ends, and is not idle.

    The last test itself may do without. No hook of a conftest sees a session's fixtures being set up: pytest calls
    those of the repository's root only.
    """
    unit = UNITS.get(file_of(item.nodeid))
    if unit is None or not isinstance(item, pytest.Function):
        return
    name, folder = SHARED[unit]
    for definition in item._fixtureinfo.name2fixturedefs.get(name, ()):
        if definition.baseid == folder:
            _shared[unit] = definition
    if following is not None and UNITS.get(file_of(following.nodeid)) != unit and unit in _shared:
        _shared.pop(unit).finish(item._request)  # type: ignore[arg-type]  # as pytest passes it


@dataclass
class _File:
    seconds: float = 0
    control_plane: bool = False
    integration: bool = False


def sort_longest_first(items: list[pytest.Item]) -> None:
    """What starts last keeps one worker busy while the others have nothing left to do, so short files start last.

    A file's tests stay together: so do those of each file in a unit, and what the file starts.
    """
    files: defaultdict[str, _File] = defaultdict(_File)
    for item in items:
        file = files[file_of(item.nodeid)]
        timeout = item.get_closest_marker("timeout")
        file.seconds = max(file.seconds, timeout.args[0] if timeout else SECONDS)
        file.control_plane |= item.get_closest_marker("control_plane") is not None
        file.integration |= item.get_closest_marker(MARK) is not None

    def key(item: pytest.Item) -> tuple[float, bool, bool]:
        file = files[file_of(item.nodeid)]
        return -file.seconds, not file.control_plane, not file.integration

    items.sort(key=key)

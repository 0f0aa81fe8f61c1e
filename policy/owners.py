"""What holds the lines of the checklist besides rules: components, and what is still to be built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Component:
    """A component that makes a line so: its module, what it does, and the test that shows it."""

    module: str
    does: str
    test: str
    """FILE::TEST."""


_MANIFESTS = "tests/cloud_controller/test_manifests.py::"
_NOBODY = Component(
    "cloud_controller.manifests",
    "the pods run as nobody without capabilities, on a read-only filesystem",
    f"{_MANIFESTS}test_in_every_shape_the_daemon_runs_as_nobody_without_capabilities_on_a_read_only_filesystem",
)

COMPONENTS: Final[dict[str, tuple[Component, ...]]] = {
    "11.1.6": (
        Component(
            "components.controller_manager",
            "the CCM's roles allow what its controllers call",
            f"{_MANIFESTS}test_manifests_contain_a_daemon_set_with_the_options_and_the_rbac_rules_of_its_controllers",
        ),
    ),
    "11.3.2": (
        Component(
            "components.controller_manager",
            "the Secret of a static credential says when it expires",
            "tests/components/test_program.py::test_the_ccms_secret_says_when_its_token_expires_where_the_stack_does",
        ),
    ),
    "11.3.4": (
        Component(
            "cloud_controller.pod_network",
            "a NetworkPolicy for CCMs in the pod network",
            "tests/cloud_controller/test_pod_network.py"
            "::test_it_reaches_neither_metadata_nor_kubelets_nor_etcd_nor_anything_else",
        ),
    ),
    "11.3.7": (
        Component(
            "cloud_controller.manifests",
            "logs are JSON, for what ships them",
            f"{_MANIFESTS}test_logs_are_json_unless_an_option_says_otherwise",
        ),
    ),
    "11.3.8": (
        Component(
            "components.monitoring",
            "alert rules for Prometheus, by its operator or in a ConfigMap",
            "tests/components/test_monitoring.py::test_a_production_stack_with_our_daemon_brings_the_alert_rules",
        ),
    ),
    "11.3.9": (_NOBODY,),
    "11.3.10": (_NOBODY,),
}
"""By line; those of a cloud are in its descriptor (`PolicyCloud.components`)."""

_CHECK = "check of `cloud-controller doctor`"

OPEN: Final = {
    **dict.fromkeys(("11.1.1", "11.1.2", "11.1.3"), _CHECK),
    **{f"11.2.{number}": _CHECK for number in range(1, 10)},
    **{f"11.4.{number}": _CHECK for number in range(1, 9)},
}
"""What is still to be built for a line, beside what holds it already."""

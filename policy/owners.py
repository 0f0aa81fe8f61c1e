"""What holds the lines of the checklist besides rules: components, checks of doctor, and what is still to be built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from policy.data import load


@dataclass(frozen=True, slots=True)
class Component:
    """A component that makes a line so: its module, what it does, and the test that shows it."""

    module: str
    does: str
    test: str
    """FILE::TEST."""


def component_of(cloud: str, module: str, does: str, test: str) -> tuple[Component]:
    """A module of a cloud's components, shown by a test (without `test_`) of that cloud's whole program."""
    program = f"tests/components/clouds/{cloud}/test_{cloud}_program.py"
    return (Component(f"components.clouds.{cloud}.{module}", does, f"{program}::test_{test}"),)


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


@dataclass(frozen=True, slots=True)
class Check:
    """A check of `cloud-controller doctor`: its name, what holds if it finds nothing, and the file of its tests."""

    name: str
    holds: str
    lines: tuple[str, ...]
    test: str


CHECKS: Final = tuple(
    Check(each["name"], each["holds"], tuple(each["lines"]), each["test"]) for each in load("doctor")["checks"]
)
"""In the order of doctor's reports."""

_OF_A_RUNNING_CLUSTER: Final = (
    *(f"11.1.{number}" for number in range(1, 4)),
    *(f"11.2.{number}" for number in range(1, 10)),
    *(f"11.4.{number}" for number in range(1, 9)),
)
"""The lines that only a running cluster can show."""
_CHECKED: Final = frozenset(line for check in CHECKS for line in check.lines)

OPEN: Final = {
    **{line: "check of `cloud-controller doctor`" for line in _OF_A_RUNNING_CLUSTER if line not in _CHECKED},
}
"""What is still to be built for a line, beside what holds it already."""

"""The steps for instances, from moto's objects and the existing processes."""

from __future__ import annotations

import pytest

from local.aws.lifecycle import Step, Work, machine_steps
from local.aws.simulator import Machine
from local.aws.user_data import KubeletFlags


def machine(state: str = "running", cluster: str = "c1") -> Machine:
    return Machine(
        id="i-1",
        cluster=cluster,
        node_name="ip-10-17-0-4.ec2.internal",
        address="10.17.0.4",
        zone="eu-central-1a",
        cpus=2,
        memory_mib=8192,
        flags=KubeletFlags(),
        state=state,
    )


@pytest.mark.parametrize(
    ("machines", "booted", "active", "expected"),
    [
        pytest.param([machine()], {}, {"c1"}, [Work.BOOT], id="a running instance gets a machine"),
        pytest.param([machine()], {}, set(), [], id="not before its cluster can be joined"),
        pytest.param([machine()], {"i-1": True}, {"c1"}, [], id="one that runs is left alone"),
        pytest.param([machine()], {"i-1": True}, set(), [], id="also while its control plane heals"),
        pytest.param([machine()], {"i-1": False}, {"c1"}, [Work.NOTE_CRASH], id="a killed one is noted, not restarted"),
        pytest.param([machine("stopped")], {"i-1": True}, {"c1"}, [Work.HALT], id="a stopped instance's machine ends"),
        pytest.param([machine("stopped")], {}, {"c1"}, [], id="a stopped instance stays so"),
        pytest.param([], {"i-1": True}, {"c1"}, [Work.REMOVE], id="a terminated instance's machine is removed"),
        pytest.param([], {}, {"c1"}, [Work.REMOVE], id="and its folder, if nothing runs any more"),
    ],
)
def test_each_difference_between_moto_and_the_processes_is_one_step(
    machines: list[Machine], booted: dict[str, bool], active: set[str], expected: list[Work]
) -> None:
    folders = ["i-1"] if booted or not machines else []

    assert list(machine_steps(machines, booted, active, folders)) == [Step("i-1", work) for work in expected]

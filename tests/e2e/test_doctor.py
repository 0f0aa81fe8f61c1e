"""`cloud-controller doctor` on a real stack: nothing on a healthy one, and the cause of each breakage first."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.breakages import BREAKAGES, Breakage
from tests.e2e.local_stack import LocalStack
from tests.e2e.patient import Patient
from tests.sampling import sample

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PAIRS = 10


_LAST = {"daemon": 1, "rights": 1, "secret": 1, "faults": 2}
"""What is broken after everything else, by what it touches."""


def pairs() -> Sequence[tuple[Breakage, Breakage]]:
    possible = [(a, b) for a, b in itertools.combinations(BREAKAGES, 2) if a.touches != b.touches]
    return sample(possible, PAIRS)


def of_mycloud(stack: LocalStack, folder: Path) -> Patient:
    """With the administrator's kubeconfig and the CCM's own cloud config."""
    (cluster,) = stack.cloud.list("clusters", name="local")
    kubeconfig = stack.cloud.get_path(f"clusters/{cluster['id']}/kubeconfig")["kubeconfig"]
    return Patient("mycloud", stack.kube, kubeconfig, folder)


@pytest.fixture(scope="module")
def stack(empty_stack: LocalStack) -> LocalStack:
    """A stack with every controller in the daemon, brought up once for the module."""
    daemon = dict.fromkeys(("node", "node-lifecycle", "service", "route", "volume"), "daemon")
    empty_stack.configure("executors", daemon)
    empty_stack.scale_workers(2)
    empty_stack.run("up")
    return empty_stack


@pytest.fixture(scope="module")
def patient(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Patient:
    """What doctor says of the stack."""
    return of_mycloud(stack, tmp_path_factory.mktemp("doctor")).recovered()


def test_a_healthy_stack_has_no_finding_and_every_check_is_done(patient: Patient) -> None:
    patient.examined()

    assert patient.complaints() == []


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda each: each.name)
def test_a_breakage_is_named_as_a_first_cause(stack: LocalStack, patient: Patient, breakage: Breakage) -> None:
    with breakage.apply(stack):
        patient.wait_for((breakage.found_by, breakage.subject), first=True)

    patient.recovered()


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: " and ".join(each.name for each in pair))
def test_both_of_a_pair_are_named_and_one_of_them_first(
    stack: LocalStack, patient: Patient, pair: tuple[Breakage, Breakage]
) -> None:
    # The cloud is broken last, so that it answers the test, and before it the CCM, which carries out other breakages.
    early, late = sorted(pair, key=lambda each: _LAST.get(each.touches, 0))
    with early.apply(stack):
        patient.wait_for((early.found_by, early.subject))
        with late.apply(stack):
            # A cloud that does not answer hides what only it can show.
            patient.wait_for(*((each.found_by, each.subject) for each in pair), blind=late.touches == "faults")
            first = patient.last["findings"][0]

    # One of them; a node that is too old, say, also waits for a machine.
    of_pair = [each for each in pair if each.subject and each.subject in first["subject"]]
    assert first["check"] in {each.found_by for each in pair} or of_pair
    patient.recovered()

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

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(900)]

PAIRS = 10

_LAST = {"quotas": 1, "daemon": 2, "rights": 2, "secret": 2, "faults": 3}
"""What is broken after everything else, by what it touches: quotas refuse what other breakages add, the CCM carries
them out, and the cloud answers the test."""


def pairs() -> Sequence[tuple[Breakage, Breakage]]:
    shown_by_itself = [each for each in BREAKAGES if not each.options]
    possible = [(a, b) for a, b in itertools.combinations(shown_by_itself, 2) if a.touches != b.touches]
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
def test_a_breakage_is_the_only_first_cause_and_what_else_it_breaks_follows(
    stack: LocalStack, patient: Patient, breakage: Breakage
) -> None:
    with breakage.apply(stack):
        patient.wait_for_first((breakage.found_by, breakage.subject), *breakage.follows, options=breakage.options)

    patient.recovered()


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: " and ".join(each.name for each in pair))
def test_both_of_a_pair_are_named_and_one_of_them_first(
    stack: LocalStack, patient: Patient, pair: tuple[Breakage, Breakage]
) -> None:
    early, late = sorted(pair, key=lambda each: _LAST.get(each.touches, 0))
    with early.apply(stack):
        patient.wait_for((early.found_by, early.subject))
        with late.apply(stack):
            # A cloud that does not answer hides what only it can show.
            wanted = ((each.found_by, each.subject) for each in pair)
            patient.wait_for(*wanted, first=True, blind=late.touches == "faults")

    patient.recovered()

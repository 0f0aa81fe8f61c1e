"""`cloud-controller doctor` on a real stack: nothing on a healthy one, and the cause of each breakage first."""

from __future__ import annotations

import base64
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.kube import SECRETS
from tests.e2e.breakages import BREAKAGES, NAME, SYSTEM, Breakage
from tests.e2e.local_stack import ROOT, LocalStack, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PAIRS = 10


def commit() -> str:
    """What chooses the pairs: another ten with every commit, and the same again for the same one."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def pairs() -> Sequence[tuple[Breakage, Breakage]]:
    possible = [(a, b) for a, b in itertools.combinations(BREAKAGES, 2) if a.touches != b.touches]
    return random.Random(commit()).sample(possible, PAIRS)


class Patient:
    """The stack, and what doctor says of it."""

    def __init__(self, stack: LocalStack, folder: Path) -> None:
        self.stack = stack
        kubeconfig, config = folder / "kubeconfig", folder / "cloud.conf"
        (cluster,) = stack.cloud.list("clusters", name="local")
        kubeconfig.write_text(stack.cloud.get_path(f"clusters/{cluster['id']}/kubeconfig")["kubeconfig"])
        secret = stack.kube.get(SECRETS, f"{NAME}-config", SYSTEM)
        config.write_bytes(base64.b64decode(secret["data"]["cloud.conf"]))
        self._files = [f"--kubeconfig={kubeconfig}", f"--cloud-config={config}"]

    def examined(self, *options: str) -> tuple[int, dict[str, Any]]:
        """The exit code and the report."""
        command = [sys.executable, "-m", "cloud_controller.cli", "doctor", "--cloud=mycloud", "--output=json"]
        done = subprocess.run(
            [*command, *self._files, "--grace=1s", *options], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode in (0, 3, 4), done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        return done.returncode, report

    def healthy(self) -> bool:
        """Whether nothing is found, and everything could be checked; a failure shows the report."""
        code, self.last = self.examined()
        return code == 0

    def recover(self) -> None:
        """Wait until the stack is well again."""
        eventually(lambda: self.healthy() or None, "the stack is well again")

    def finds(self, breakage: Breakage, *, first: bool) -> bool:
        """Whether the report names the breakage, as one of its first causes."""
        _, self.last = self.examined()
        return any(
            each["check"] == breakage.found_by
            and breakage.subject in each["subject"]
            and (not first or not each["followsFrom"])
            for each in self.last["findings"]
        )


@pytest.fixture(scope="module")
def patient(empty_stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patient]:
    """A stack with every controller in the daemon, brought up once for the module."""
    daemon = dict.fromkeys(("node", "node-lifecycle", "service", "route", "volume"), "daemon")
    empty_stack.configure("executors", daemon)
    empty_stack.scale_workers(2)
    empty_stack.run("up")
    patient = Patient(empty_stack, tmp_path_factory.mktemp("doctor"))
    patient.recover()
    yield patient


def test_a_healthy_stack_has_no_finding_and_every_check_is_done(patient: Patient) -> None:
    code, report = patient.examined()

    assert (code, report["findings"], report["notChecked"]) == (0, [], [])


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda each: each.name)
def test_a_breakage_is_named_as_a_first_cause(patient: Patient, breakage: Breakage) -> None:
    with breakage.apply(patient.stack):
        eventually(lambda: patient.finds(breakage, first=True), f"{breakage.found_by} names it")

    patient.recover()


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: " and ".join(each.name for each in pair))
def test_both_of_a_pair_are_named_and_one_of_them_first(patient: Patient, pair: tuple[Breakage, Breakage]) -> None:
    with pair[0].apply(patient.stack), pair[1].apply(patient.stack):
        eventually(lambda: all(patient.finds(each, first=False) for each in pair), "both are named")
        first = patient.last["findings"][0]

    assert first["check"] in {each.found_by for each in pair}
    patient.recover()

"""The production stacks hold to every rule, and each rule guards them: a damage of what it holds is found."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from cloud_stacks.policies.host import PolicyHost
from policy.checklist import POLICIES
from tests.policy import (
    mutants,
    mutants_cluster,
    mutants_components,
    mutants_credentials,
    mutants_rights,
    mutants_services,
    mutants_workloads,
)
from tests.policy.mutants import Mutant
from tests.policy.production import ROOT, STACKS, Seen, findings, resources
from tests.policy_objects import start

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

MUTANTS = [
    mutant
    for area in (
        mutants,
        mutants_cluster,
        mutants_components,
        mutants_credentials,
        mutants_rights,
        mutants_services,
        mutants_workloads,
    )
    for mutant in area.MUTANTS
]

REPORT_GOOD = {rule.name for rule in POLICIES if "reports_good" in rule.about}
"""Advisory everywhere, until they pass the good programs that they report."""
DATED = {"cluster-version-stay-supported"}
"""A stack's version comes to the end of its support one day: that is for the stack's owner, not for this test."""
DATED_BY_STACK = {"openstack-prod": {"ccm-credential-set-expiry"}}
"""So does a credential whose last day is in the stack's file."""


def dated(stack: str) -> set[str]:
    """The rules of which a day may make a finding in this stack."""
    return DATED | DATED_BY_STACK.get(stack, set())


@pytest.fixture(scope="module")
def packs() -> Iterator[dict[str, PolicyHost]]:
    """The pack with each stack's own settings."""
    started = {stack: start(json.loads((ROOT / "stacks" / f"policies.{stack}.json").read_text())) for stack in STACKS}
    yield started
    for pack in started.values():
        pack.close()


@pytest.mark.parametrize("stack", STACKS)
def test_a_production_stack_holds_to_every_rule(packs: dict[str, PolicyHost], stack: str) -> None:
    found = findings(packs[stack], resources(stack), resources(stack))

    assert [finding for finding in found if finding.policy not in dated(stack)] == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.rule}-{mutant.stack}")
def test_a_damage_is_found_by_the_rule_that_guards_against_it(packs: dict[str, PolicyHost], mutant: Mutant) -> None:
    stack = [*resources(mutant.stack)]
    damaged = damage(stack, mutant)

    expected = dated(mutant.stack) - {mutant.rule}
    found = [each for each in findings(packs[mutant.stack], damaged, stack) if each.policy not in expected]

    assert {finding.policy for finding in found} - mutant.also == {mutant.rule}
    levels = {finding.policy: finding.level for finding in found}
    assert levels == {name: "advisory" if name in REPORT_GOOD else "mandatory" for name in levels}


def test_every_rule_has_a_mutant() -> None:
    # It compares with an exported state, which no production stack's settings name.
    without = {"lb-service-acknowledge-address-change"}

    assert {rule.name for rule in POLICIES} - {mutant.rule for mutant in MUTANTS} == without


def damage(stack: list[Seen], mutant: Mutant) -> list[Seen]:
    """Damage the stack in place; gives the damaged resources, without those beside."""
    matching = [index for index, each in enumerate(stack) if mutant.is_of(each.alone.type, each.alone.name)]
    changed = matching if mutant.every else matching[:1]
    for index in changed:
        stack[index] = stack[index].changed(mutant.damaged, mutant.becomes)
        if mutant.alone:
            stack[index] = stack[index].without_dependencies()
    if mutant.beside is not None:
        damage(stack, mutant.beside)
    return [stack[index] for index in changed]

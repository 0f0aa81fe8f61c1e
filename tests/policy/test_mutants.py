"""The production stacks hold to every rule, and each rule guards them: a damage of what it holds is found."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from local.engine.policies.host import PolicyHost
from tests.policy.mutants import MUTANTS, Mutant
from tests.policy.mutants_components import MUTANTS as OF_COMPONENTS
from tests.policy.mutants_credentials import MUTANTS as OF_CREDENTIALS
from tests.policy.production import ROOT, STACKS, findings, resources
from tests.policy_objects import start

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def packs() -> Iterator[dict[str, PolicyHost]]:
    """The pack with each stack's own settings."""
    started = {stack: start(json.loads((ROOT / "stacks" / f"policies.{stack}.json").read_text())) for stack in STACKS}
    yield started
    for pack in started.values():
        pack.close()


@pytest.mark.parametrize("stack", STACKS)
def test_a_production_stack_holds_to_every_rule(packs: dict[str, PolicyHost], stack: str) -> None:
    assert findings(packs[stack], resources(stack), resources(stack)) == []


@pytest.mark.parametrize(
    "mutant", [*MUTANTS, *OF_COMPONENTS, *OF_CREDENTIALS], ids=lambda mutant: f"{mutant.rule}-{mutant.stack}"
)
def test_a_damage_is_found_by_the_rule_that_guards_against_it(packs: dict[str, PolicyHost], mutant: Mutant) -> None:
    stack = [*resources(mutant.stack)]
    index = next(i for i, each in enumerate(stack) if mutant.is_of(each.alone.type, each.alone.name))
    stack[index] = stack[index].changed(mutant.damaged)

    found = findings(packs[mutant.stack], [stack[index]], stack)

    assert {finding.policy for finding in found} - mutant.also == {mutant.rule}
    assert {finding.level for finding in found} == {"mandatory"}

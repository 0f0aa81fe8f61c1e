"""What holds for every rule of the pack."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from policy.checklist import POLICIES
from policy.checklist_page import components, lines_page, rows_of, rules_page, where_tested
from policy.lines import LINES
from policy.owners import CHECKS, OPEN
from policy.rules import ADVISORY
from tests.policy.production import STACKS
from tests.policy_objects import ccm, resource, service, start, workload

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "anything",
    [
        ccm(),
        service(),
        resource("kubernetes:core/v1:Service", {}),
        resource("kubernetes:apps/v1:DaemonSet", {}),
        resource("kubernetes:apps/v1:Deployment", {"spec": {"template": {"spec": {"containers": []}}}}),
        resource("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", {"rules": []}),
        resource("kubernetes:rbac.authorization.k8s.io/v1:RoleBinding", {}),
        resource("kubernetes:core/v1:ConfigMap", {}),
        workload({"template": {"spec": {"containers": [{"name": "web", "image": "web"}]}}}, "Deployment"),
        resource(
            "kubernetes:batch/v1:Job", workload({"template": {"spec": {"containers": [{"image": "web"}]}}}).properties
        ),
    ],
)
def test_correct_empty_and_unrelated_resources_pass_all_rules(pack: PolicyHost, anything: AnalyzedResource) -> None:
    assert pack.analyze(anything) == []


@pytest.mark.integration
@pytest.mark.parametrize("settings", sorted((ROOT / "stacks").glob("policies.*.json")), ids=lambda path: path.name)
def test_the_policy_settings_of_a_stack_are_valid_and_the_stack_exists(settings: Path) -> None:
    start(json.loads(settings.read_text())).close()

    assert (settings.parent / f"Pulumi.{settings.name.split('.')[1]}.yaml").exists()


@pytest.mark.parametrize("stack", STACKS)
def test_a_rule_that_reports_good_programs_is_mandatory_neither_by_itself_nor_in_production(stack: str) -> None:
    settings = json.loads((ROOT / "stacks" / f"policies.{stack}.json").read_text())
    levels = {name: each.get("enforcementLevel") if isinstance(each, dict) else each for name, each in settings.items()}
    wrong = [rule for rule in POLICIES if "reports_good" in rule.about]

    assert {rule.name: levels.get(rule.name) for rule in wrong} == {rule.name: "advisory" for rule in wrong}
    assert {rule.enforcement_level for rule in wrong} == {ADVISORY}


@pytest.mark.parametrize(("page", "made"), [("checklist", lines_page), ("policy-rules", rules_page)])
def test_the_pages_made_from_the_rules_are_up_to_date(page: str, made: Callable[[], str]) -> None:
    assert (ROOT / "docs" / f"{page}.md").read_text() == made(), "run `make docs`"


def test_every_line_of_the_checklist_has_an_owner() -> None:
    assert [line for line in LINES if not [*rows_of(line)]] == []


def test_every_owner_has_a_test() -> None:
    rules = [where_tested(rule) for rule in POLICIES]
    of_components = [each.test for owners in components().values() for each in owners]

    assert [test for test in [*rules, *(check.test for check in CHECKS)] if not (ROOT / test).exists()] == []
    for test in of_components:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text()


def test_rules_components_and_checks_hold_only_lines_that_exist() -> None:
    held = {line for rule in POLICIES for line in rule.about.get("lines", ())} | {*components(), *OPEN}
    # Checks name rows of section 10 too.
    checked = {line for check in CHECKS for line in check.lines if line.startswith("11.")}

    assert held | checked <= {*LINES}


def test_every_symptom_of_seed_002_has_a_check() -> None:
    checked = {line for check in CHECKS for line in check.lines}

    assert {f"10.1.{row}" for row in range(1, 9)} <= checked


def test_every_rule_has_a_reason_a_remedy_and_a_source() -> None:
    for policy in POLICIES:
        assert len(policy.description) > 80
        for text in (policy.about["judges"], policy.about.get("unseen", "None."), policy.remediation_steps or ""):
            assert re.match(r"[A-Z`]|kube", text), f"{policy.name}: a sentence starts with a capital: {text}"
        assert policy.remediation_steps
        assert policy.url
        assert policy.framework is not None
        assert policy.config_schema is not None
        assert "exempt" in policy.config_schema.properties

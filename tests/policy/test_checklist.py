"""What holds for every rule of the pack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from local.engine.policies.host import AnalyzedResource, PolicyHost
from policy.checklist import POLICIES
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
        resource("kubernetes:batch/v1:Job", ccm(containers=[{"image": "cloud-controller"}]).properties),
    ],
)
def test_correct_empty_and_unrelated_resources_pass_all_rules(pack: PolicyHost, anything: AnalyzedResource) -> None:
    assert pack.analyze(anything) == []


@pytest.mark.integration
@pytest.mark.parametrize("settings", sorted((ROOT / "stacks").glob("policies.*.json")), ids=lambda path: path.name)
def test_the_policy_settings_of_a_stack_are_valid_and_the_stack_exists(settings: Path) -> None:
    start(json.loads(settings.read_text())).close()

    assert (settings.parent / f"Pulumi.{settings.name.split('.')[1]}.yaml").exists()


def test_the_page_on_policies_has_every_rule_with_its_level_and_severity() -> None:
    page = (ROOT / "docs" / "policies.md").read_text()

    for policy in POLICIES:
        [row] = [line for line in page.splitlines() if line.startswith(f"| `{policy.name}`")]
        level, severity = policy.enforcement_level, policy.severity
        assert level is not None
        assert severity is not None
        assert f"| {level.value} | {severity.value} |" in row


def test_every_rule_has_a_reason_a_remedy_and_a_source() -> None:
    for policy in POLICIES:
        assert len(policy.description) > 80
        assert policy.remediation_steps
        assert policy.url
        assert policy.framework is not None
        assert policy.config_schema is not None
        assert "exempt" in policy.config_schema.properties

"""Plans without state, secrets and network."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from local.engine.stack.project import stacks_in
from local.plugins.interpreter import Interpreter

from cloud_stacks.cli import main
from cloud_stacks.offline import Checkout, placeholders
from cloud_stacks.plans import Choice, preview

ROOT = Path(__file__).parents[2]
STACKS = stacks_in(ROOT / "stacks")


def test_a_stack_that_a_site_completes_gets_endpoints_that_lead_nowhere() -> None:
    added = {stack: placeholders(ROOT, stack) for stack in STACKS}

    assert {stack for stack in STACKS if added[stack]} == {
        *("alicloud-local", "aws-local", "local", "mycloud-ha", "mycloud-prod", "openstack-local")
    }
    assert added["local"]["cloud-controller:mycloud"]["endpoint"] == "https://mycloud.invalid"
    # A site's token expires; the policies ask when.
    assert date.fromisoformat(added["local"]["cloud-controller:mycloud"]["tokenExpires"]) > datetime.now(UTC).date()
    assert added["local"]["cloud-controller:mycloudToken"] == {"secure": ""}
    # What the stack file has stays.
    assert added["aws-local"]["cloud-controller:aws"]["region"] == "eu-central-1"


def test_a_value_of_the_stack_file_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: cloud-controller\nruntime: python\n")
    config = {
        "cloud": "mycloud",
        "mycloud": {"endpoint": "https://mine.example.com"},
        "mycloudToken": {"secure": "v1:x"},
    }
    (tmp_path / "Pulumi.dev.yaml").write_text(json.dumps({"config": config}))

    added = placeholders(tmp_path, "dev")

    assert "cloud-controller:mycloud" not in added
    assert "cloud-controller:mycloudToken" not in added


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_stacks_of_every_cloud_are_planned_without_a_cloud_and_pass_their_policies() -> None:
    shown = io.StringIO()
    stacks = ("alicloud-local", "alicloud-staging", "aws-prod", "aws-staging", "mycloud-ha", "openstack-local")
    chosen = [word for stack in stacks for word in ("--stack", stack)]

    code = main(["preview", "--cwd", str(ROOT), "--json", *chosen], shown)

    planned = json.loads(shown.getvalue())["stacks"]
    assert code == 0, planned
    assert all(len(stack["changes"]) > 20 for stack in planned)


def test_a_stack_whose_policy_settings_are_no_json_is_a_problem_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    for stack in ("dev", "prod"):
        (tmp_path / f"Pulumi.{stack}.yaml").write_text("config: {}\n")
        (tmp_path / f"policies.{stack}.json").write_text("{,}")

    reports = preview(Checkout(tmp_path, Interpreter()), Choice())

    assert [report.stack for report in reports] == ["dev", "prod"]
    for report in reports:
        [problem] = report.problems
        assert problem.severity == "error"
        assert problem.message.startswith(f"policies.{report.stack}.json: not JSON: ")

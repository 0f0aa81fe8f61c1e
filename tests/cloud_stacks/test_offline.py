"""Plans without state, secrets and network."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from cloud_stacks.cli import main
from cloud_stacks.plans import Choice, preview
from local.pulumi.project import config_of, load_project, read_map, stacks_in
from local.pulumi.rehearsal import Checkout, placeholders
from local.pulumi.toolchain import Toolchain

ROOT = Path(__file__).parents[2]
STACKS = stacks_in(ROOT / "stacks")


def test_a_stack_that_a_site_completes_gets_endpoints_that_lead_nowhere() -> None:
    project = load_project(ROOT)
    files = {stack: project.stack_file(stack) for stack in STACKS}
    configs = {stack: config_of(read_map(file), file, project.name) for stack, file in files.items()}

    added = {stack: placeholders(config, project.name) for stack, config in configs.items()}

    assert {stack for stack in STACKS if added[stack]} == {
        *("alicloud-local", "aws-local", "local", "mycloud-ha", "mycloud-prod", "openstack-local")
    }
    assert added["local"]["cloud-controller:mycloud"]["endpoint"] == "https://mycloud.invalid"
    # A site's token expires; the policies ask when.
    assert date.fromisoformat(added["local"]["cloud-controller:mycloud"]["tokenExpires"]) > datetime.now(UTC).date()
    assert added["local"]["cloud-controller:mycloudToken"] == {"secure": ""}
    # What the stack file has stays.
    assert added["aws-local"]["cloud-controller:aws"]["region"] == "eu-central-1"


def test_a_value_of_the_stack_file_is_never_replaced() -> None:
    config = {
        "shop:cloud": "mycloud",
        "shop:mycloud": {"endpoint": "https://mine.example.com"},
        "cloud-controller:mycloudToken": {"secure": "v1:x"},
    }

    assert not config.keys() & placeholders(config, "shop").keys()


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

    reports = preview(Toolchain(Path("pulumi"), {}), Checkout(tmp_path), Choice())

    assert [report.stack for report in reports] == ["dev", "prod"]
    for report in reports:
        [problem] = report.problems
        assert problem.severity == "error"
        assert problem.message.startswith(f"policies.{report.stack}.json: not JSON: ")

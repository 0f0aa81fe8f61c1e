"""What the components' hooks log: on their resource, in every form of output, and only for changes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi import ResourceHookBinding, ResourceOptions

from cloud_controller.clouds.aws.annotations import CATALOGUE
from components.address_change import address_hook
from components.plan_message import plan_hook
from local.engine import cli
from local.engine.events import Diagnostic
from local.plugins.urn import name_of

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[4]
PLAN = [{"kind": "create", "target": "route/10.20.1.0/24", "summary": "route pods of a to its machine"}]
SHOWN = "plan: 1 to create\n  +  route/10.20.1.0/24: route pods of a to its machine"


def reported(outcome: Any) -> list[tuple[str, str]]:
    """The messages of a run, each with the name of its resource."""
    return [(name_of(e.urn), e.message) for e in outcome.events if isinstance(e, Diagnostic) and e.severity == "info"]


@pytest.fixture
def controller(kit: Any) -> Callable[..., Callable[[], object]]:
    """A program whose resource `controller` has a plan among its inputs, as `CloudController` has after its check."""

    def program(**properties: Any) -> Callable[[], object]:
        def run() -> None:
            hook = plan_hook("controller")
            binding = ResourceHookBinding(before_create=[hook], before_update=[hook])
            kit.Thing("controller", ResourceOptions(hooks=binding), **properties)

        return run

    return program


def test_a_preview_shows_the_plan_of_a_create_and_of_an_update(stack: Any, controller: Any) -> None:
    assert reported(stack.preview(controller(size=1, plan=PLAN))) == [("controller", SHOWN)]

    assert stack.up(controller(size=1, plan=[])).ok

    assert reported(stack.preview(controller(size=2, plan=PLAN))) == [("controller", SHOWN)]


def test_an_update_shows_the_plan_that_it_carries_out(stack: Any, controller: Any) -> None:
    assert reported(stack.up(controller(size=1, plan=PLAN))) == [("controller", SHOWN)]


def test_an_unchanged_resource_logs_no_plan(stack: Any, controller: Any) -> None:
    assert stack.up(controller(size=1, plan=PLAN)).ok

    assert reported(stack.preview(controller(size=1, plan=PLAN))) == []
    assert reported(stack.up(controller(size=1, plan=PLAN))) == []


def test_a_failure_to_show_the_plan_does_not_prevent_the_create(stack: Any, controller: Any) -> None:
    outcome = stack.up(controller(size=1, plan=[{"kind": "another"}]))

    assert outcome.ok
    assert any('hook "plan-of-controller" failed' in warning for warning in outcome.warnings)


def test_a_change_that_loses_the_address_is_a_warning_on_the_service(stack: Any, kit: Any) -> None:
    assert stack.up(service(kit, type="nlb")).ok

    outcome = stack.preview(service(kit, type="nlb", internal="true"))

    [warning] = [e for e in outcome.events if isinstance(e, Diagnostic) and e.severity == "warning"]
    assert name_of(warning.urn) == "web"
    assert "the address changes" in warning.message


def test_the_class_of_the_service_decides_which_change_loses_the_address(stack: Any, kit: Any) -> None:
    spec = {"loadBalancerClass": "service.k8s.aws/nlb"}
    assert stack.up(service(kit, spec)).ok

    outcome = stack.preview(service(kit, spec, internal="false"))

    [warning] = [e for e in outcome.events if isinstance(e, Diagnostic) and e.severity == "warning"]
    assert "internal: True -> False" in warning.message


def service(kit: Any, spec: dict[str, str] | None = None, **annotations: str) -> Callable[[], object]:
    """A program whose only resource is a Service on AWS with these annotations."""
    names = {f"service.beta.kubernetes.io/aws-load-balancer-{name}": text for name, text in annotations.items()}

    def run() -> None:
        hooks = ResourceHookBinding(before_update=[address_hook("web", CATALOGUE, None, protect=True)])
        kit.Thing("web", ResourceOptions(hooks=hooks), metadata={"annotations": names}, spec=spec or {})

    return run


@pytest.fixture
def preview_local(tmp_path: Path) -> Callable[..., str]:
    """The output of a preview of the project's stack `local` where nothing exists, without a question."""
    stack_file = yaml.safe_load((ROOT / "stacks" / "Pulumi.local.yaml").read_text())
    stack_file["config"]["cloud-controller:mycloud"] = {"endpoint": "http://127.16.0.1:7070"}
    stack_file["config"]["cloud-controller:mycloudToken"] = {"secure": "v1:AAAA:BBBB"}
    (tmp_path / "Pulumi.local.yaml").write_text(yaml.safe_dump(stack_file))

    def preview(*options: str) -> str:
        out = io.StringIO()
        where = ["--cwd", str(ROOT), "--state", str(tmp_path), "--config-file", str(tmp_path / "Pulumi.local.yaml")]
        assert cli.main(["preview", "--stack", "local", "--placeholder-secrets", *where, *options], out) == 0
        return out.getvalue()

    return preview


def test_the_first_preview_of_a_stack_shows_the_plan_among_the_diagnostics_of_its_controller(
    preview_local: Callable[..., str],
) -> None:
    section = preview_local().partition("Diagnostics:\n")[2].partition("\n\n")[0].splitlines()

    title, counts, *actions = section
    assert title == "  pulumi-python:dynamic/cloudcontroller:CloudController (cloud-controller):"
    assert counts == "    plan: 4 to create, 4 to update"
    assert "        ~  node/local-workers-0: initialise after registration [assumed]" in actions
    assert len(actions) == 8


def test_events_carry_the_plan_under_the_urn_of_the_controller(preview_local: Callable[..., str]) -> None:
    events = [json.loads(line) for line in preview_local("--json").splitlines()]

    [diagnostic] = [event["diagnosticEvent"] for event in events if "diagnosticEvent" in event]

    assert diagnostic["urn"].endswith("cloudcontroller:CloudController::cloud-controller")
    assert (diagnostic["severity"], diagnostic["message"].splitlines()[0]) == (
        "info",
        "plan: 4 to create, 4 to update",
    )

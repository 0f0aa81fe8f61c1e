"""Two commits of a small program, compared by Pulumi's CLI: each stack is a case."""

from __future__ import annotations

import io
import json
import shutil
from typing import Any

import pytest

from cloud_stacks.cli import main
from tests.cloud_stacks.test_wheel import git

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

Reports = dict[str, dict[str, Any]]
"""By stack, as JSON."""
STACKS = ("broken-before", "broken-now", "gone", "kept", "removed", "unsure", "violated")
PROGRAM = """\
import pulumi
import pulumi_kubernetes as kubernetes
import shop

stack = pulumi.get_stack()
shop.check(stack)
cluster = kubernetes.Provider("cluster", kubeconfig=pulumi.Config().require_secret("kubeconfig"))
opts = pulumi.ResourceOptions(provider=cluster)
space = kubernetes.core.v1.Namespace("space", metadata={"name": "shop"}, opts=opts)
data = {"level": "debug" if stack == "violated" else "info", "commit": shop.COMMIT}
if stack == "unsure" and shop.COMMIT == "head":
    data["level"] = space.status.phase
if stack == "violated":
    pulumi.ComponentResource("shop:index:Till", "till", {"token": pulumi.Output.secret(f"of-{shop.COMMIT}")})
if stack in ("violated", "unsure"):
    kubernetes.core.v1.ConfigMap("settings", metadata={"name": "s", "namespace": "shop"}, data=data, opts=opts)
if stack != "removed" or shop.COMMIT == "base":
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    kubernetes.core.v1.Service("web", metadata={"name": "web", "namespace": "shop"}, spec=spec, opts=opts)
"""
MODULE = """\
COMMIT = "{commit}"


def check(stack):
    if stack == "{broken}":
        raise ValueError("no such shop")
"""
PACK = """\
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy


def level(args, report):
    if args.resource_type == "kubernetes:core/v1:ConfigMap" and args.props["data"]["level"] == "debug":
        report("level is debug")


rules = [ResourceValidationPolicy("level", "no debug", level)]
PolicyPack("shop", rules, enforcement_level=EnforcementLevel.MANDATORY)
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """What `diff` says of each stack."""
    folder = tmp_path_factory.mktemp("shop")
    config = "config:\n  shop:kubeconfig: {secure: v1:of-the-user}\n"
    files = {
        "Pulumi.yaml": "name: shop\nruntime: python\n",
        "__main__.py": PROGRAM,
        "shop.py": MODULE.format(commit="base", broken="broken-before"),
        "policy/PulumiPolicy.yaml": "runtime: python\n",
        "policy/__main__.py": PACK,
        **{f"Pulumi.{stack}.yaml": config for stack in STACKS},
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "base")
    (folder / "shop.py").write_text(MODULE.format(commit="head", broken="broken-now"))
    (folder / "Pulumi.gone.yaml").unlink()
    shown = io.StringIO()

    main(["diff", "--base", "main", "--cwd", str(folder), "--json"], shown)

    shutil.rmtree(folder)
    return {each["stack"]: each for each in json.loads(shown.getvalue())["stacks"]}


def messages(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["severity"], each["message"].splitlines()[-1]) for each in report["problems"]]


def changes(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["op"], each["name"]) for each in report["changes"]]


def lines(change: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["path"], each["before"], each["after"]) for each in change["lines"]]


def line_of(text: str) -> int:
    """The program's line with a text."""
    [number] = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if text in line]
    return number


def test_a_stack_that_stays_as_it_is_has_nothing_to_report(reports: Reports) -> None:
    report = reports["kept"]

    assert (report["changes"], report["problems"], report["failed"]) == ([], [], False)
    assert report["unchanged"] == 4


def test_a_service_that_the_head_no_longer_has_is_deleted_and_its_address_lost(reports: Reports) -> None:
    report = reports["removed"]

    assert changes(report) == [("delete", "web")]
    assert [effect["kind"] for effect in report["changes"][0]["effects"]] == ["address gone"]


def test_a_violation_that_the_base_has_too_is_no_finding_of_the_change(reports: Reports) -> None:
    report = reports["violated"]

    assert (report["findings"], report["kept"], report["failed"]) == ([], 1, False)


def test_what_differs_is_shown_without_secrets_and_with_the_programs_line(reports: Reports) -> None:
    settings, till = reports["violated"]["changes"]

    # Each commit's own module says which one it is.
    assert (settings["op"], settings["name"], settings["place"]["line"]) == (
        "replace",
        "settings",
        line_of('"settings"'),
    )
    assert lines(settings) == [("data.commit", '"base"', '"head"')]
    assert (till["op"], till["name"], till["place"]["line"]) == ("update", "till", line_of('"till"'))
    assert lines(till) == [("token", "[secret]", "[secret]")]
    assert "of-head" not in json.dumps(reports)


def test_a_program_that_fails_is_an_error_at_its_line(reports: Reports) -> None:
    report = reports["broken-now"]

    assert messages(report) == [("error", "ValueError: no such shop")]
    assert report["problems"][0]["place"] == {"path": "__main__.py", "line": 6}
    assert report["failed"]


def test_all_is_new_where_the_base_cannot_be_planned(reports: Reports) -> None:
    report = reports["broken-before"]

    assert messages(report) == [("warning", "the base cannot be planned, so every resource counts as new")]
    assert [(each["severity"]) for each in report["solved"]] == ["error"]
    assert {op for op, _ in changes(report)} == {"create"} and not report["failed"]


def test_a_stack_whose_file_is_deleted_is_left_to_itself(reports: Reports) -> None:
    assert [severity for severity, _ in messages(reports["gone"])] == ["warning"]
    assert "the stack file is deleted" in reports["gone"]["problems"][0]["message"]


def test_a_mandatory_rule_that_an_unknown_value_keeps_from_being_evaluated_fails_the_stack(reports: Reports) -> None:
    report = reports["unsure"]

    assert [(each["policy"], each["level"]) for each in report["findings"]] == [("level", "not-evaluated")]
    assert report["problems"] == [] and report["failed"]

"""The policy host against real analyzer servers, started from packs that the tests write."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from google.protobuf.json_format import MessageToDict

from cloud_stacks.policies.host import (
    AnalyzedOptions,
    AnalyzedProvider,
    AnalyzedResource,
    Finding,
    PolicyError,
    PolicyHost,
)
from cloud_stacks.policies.resources import analyze_request, stack_resource
from local.plugins.values import UNKNOWN, PropertyMap, ResourceReference, Secret

pytestmark = pytest.mark.integration

RULES = """
import os, sys
from pulumi_policy import (EnforcementLevel, PolicyConfigSchema, PolicyPack, ResourceValidationPolicy, Severity,
    StackValidationPolicy)

def level(args, report):
    if args.resource_type == "t:index:Thing" and args.props["level"] == "debug":
        report("level is debug")

def most(args, report):
    print("looking at", args.name)
    if args.props.get("count", 0) > args.get_config()["most"]:
        report("more than %d" % args.get_config()["most"])

def crash(args, report):
    if args.resource_type == "t:index:Crash":
        raise KeyError("speck")

def trim(args):
    if args.props.get("name", "").endswith(" "):
        args.props["name"] = args.props["name"].strip()
        return args.props

def env(args, report):
    if args.resource_type == "t:index:Environment":
        report(",".join(os.environ.get(key, "-") for key in args.props["keys"]))

def kept(args, report):
    for key in args.props:
        if key.startswith("__"):
            report("sees " + key)

def things(args, report):
    if not [r for r in args.resources if r.resource_type == "t:index:Thing"]:
        report("no thing")
    for r in args.resources:
        if r.parent is not None:
            report("has a parent", r.urn)

PolicyPack("sample", [
    ResourceValidationPolicy("level", "No debug.", level, enforcement_level=EnforcementLevel.MANDATORY,
        severity=Severity.HIGH),
    ResourceValidationPolicy("most", "Not too many.", most,
        config_schema=PolicyConfigSchema({"most": {"type": "integer", "default": 3}})),
    ResourceValidationPolicy("crash", "Crashes.", crash),
    ResourceValidationPolicy("trim", "Trims.", remediate=trim, enforcement_level=EnforcementLevel.REMEDIATE),
    ResourceValidationPolicy("env", "Environment.", env),
    ResourceValidationPolicy("kept", "Internal keys.", kept),
    StackValidationPolicy("things", "Things exist.", things),
])
"""


def write_pack(folder: Path, code: str, manifest: str = "runtime: python\nversion: 1.2.3\n") -> Path:
    folder.mkdir()
    (folder / "PulumiPolicy.yaml").write_text(manifest)
    (folder / "__main__.py").write_text(code)
    return folder


def start(folder: Path, **options: Any) -> PolicyHost:
    defaults: dict[str, Any] = {
        "engine_address": "127.0.0.1:1",
        "project": "sample",
        "stack": "dev",
        "dry_run": True,
        "config": {},
    }
    return PolicyHost.start(folder, **(defaults | options))


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolicyHost]:
    running = start(write_pack(tmp_path_factory.mktemp("packs") / "sample", RULES))
    yield running
    running.close()


def thing(props: PropertyMap, type: str = "t:index:Thing", **options: Any) -> AnalyzedResource:
    return AnalyzedResource(type, "urn:pulumi:dev::sample::t:index:Thing::a", "a", props, **options)


def rules(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.policy, finding.level) for finding in findings]


def test_a_violation_is_found_with_its_level_message_and_resource(host: PolicyHost) -> None:
    [finding] = host.analyze(thing({"level": "debug"}))

    assert finding == Finding(
        policy="level",
        pack="sample",
        version="1.2.3",
        level="mandatory",
        message="level is debug",
        urn="urn:pulumi:dev::sample::t:index:Thing::a",
        description="No debug.",
        severity="high",
        rule_level="mandatory",
    )


def test_a_rule_that_touches_an_unknown_value_is_not_evaluated(host: PolicyHost) -> None:
    [finding] = host.analyze(thing({"level": UNKNOWN}))

    assert (finding.policy, finding.level, finding.rule_level) == ("level", "not-evaluated", "mandatory")
    assert "level" in finding.message


def test_schema_defaults_reach_the_rule(host: PolicyHost) -> None:
    assert rules(host.analyze(thing({"level": "info", "count": 4}))) == [("most", "advisory")]


def test_secrets_and_references_reach_the_rule_as_plain_values(host: PolicyHost) -> None:
    props = {"level": Secret("debug"), "of": ResourceReference("urn:x", "id"), "in": ResourceReference("urn:x")}

    assert rules(host.analyze(thing(props))) == [("level", "mandatory")]


def test_internal_keys_are_kept_from_rules_but_not_lost_by_remediation(host: PolicyHost) -> None:
    given = thing({"level": "info", "name": "x ", "__provider": Secret("code"), "n": 1, "later": UNKNOWN})

    properties, done = host.remediate(given)

    assert host.analyze(given) == []
    [(finding, change)] = done
    assert rules([finding]) == [("trim", "remediate")]
    assert change == (given.properties, properties)
    assert properties == {"level": "info", "name": "x", "__provider": Secret("code"), "n": 1, "later": UNKNOWN}


def test_inputs_that_need_no_remediation_come_back_as_they_are(host: PolicyHost) -> None:
    given = thing({"level": "info", "name": "x"})

    assert host.remediate(given) == (given.properties, [])


def test_a_stack_rules_finding_without_a_resource_is_the_stacks(host: PolicyHost) -> None:
    [finding] = host.analyze_stack([thing({}, type="t:index:Other")])

    assert (finding.policy, finding.urn) == ("things", "urn:pulumi:dev::sample::pulumi:pulumi:Stack::sample-dev")


def test_a_stack_rule_sees_parents(host: PolicyHost) -> None:
    parent = thing({})
    child = AnalyzedResource("t:index:Thing", "urn:child", "child", {}, parent=parent.urn)

    assert [finding.urn for finding in host.analyze_stack([parent, child])] == ["urn:child"]


def test_a_crashing_rule_is_an_error_that_names_the_resource(host: PolicyHost) -> None:
    with pytest.raises(PolicyError, match=r"crashed on urn:pulumi:dev.*speck"):
        host.analyze(thing({}, type="t:index:Crash"))


def test_levels_come_from_the_given_configuration_and_what_rules_print_is_passed_on(tmp_path: Path) -> None:
    lines: list[str] = []
    running = start(
        write_pack(tmp_path / "p", RULES),
        policy_config={"all": "advisory", "most": {"enforcementLevel": "mandatory", "most": 9}},
        report=lines.append,
    )
    try:
        assert rules(running.analyze(thing({"level": "debug", "count": 10}))) == [
            ("level", "advisory"),
            ("most", "mandatory"),
        ]
    finally:
        running.close()
    assert "looking at a" in lines


def test_the_server_gets_the_clis_environment_but_not_the_stacks_passphrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "hush")
    running = start(write_pack(tmp_path / "p", RULES), config={"sample:a": "b"}, config_secret_keys=["sample:a"])
    keys = [
        "PULUMI_PROJECT",
        "PULUMI_STACK",
        "PULUMI_ORGANIZATION",
        "PULUMI_DRY_RUN",
        "PULUMI_CONFIG",
        "PULUMI_CONFIG_PASSPHRASE",
    ]

    [finding] = running.analyze(thing({"keys": keys}, type="t:index:Environment"))

    running.close()
    assert finding.message == 'sample,dev,organization,true,{"sample:a": "b"},-'


def test_the_server_is_gone_after_close(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    running = start(write_pack(tmp_path / "p", RULES))
    started = set(psutil.Process().children(recursive=True)) - before

    running.close()
    running.close()

    assert started
    assert not any(child.is_running() for child in started)


@pytest.mark.parametrize(
    ("code", "manifest", "said"),
    [
        ("import no_such_module", "runtime: python", "No module named 'no_such_module'"),
        ("print('hello')", "runtime: python", 'first line is "hello"'),
        ("", "runtime: {name: python, options: {virtualenv: ../nowhere}}", r"virtualenv: .*nowhere.* does not exist"),
        ("", "runtime: nodejs", "'nodejs'; only python packs can be tested"),
        ("", "[", "PulumiPolicy.yaml"),
        ("", "a", "must be an object"),
    ],
)
def test_a_pack_that_cannot_run_is_refused_with_the_reason(tmp_path: Path, code: str, manifest: str, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        start(write_pack(tmp_path / "p", code, manifest))


def test_a_folder_without_a_pack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="is not a policy pack"):
        start(tmp_path)


def test_an_invalid_configuration_ends_the_packs_server(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))

    with pytest.raises(PolicyError, match="did you mean"):
        start(write_pack(tmp_path / "p", RULES), policy_config={"levle": "mandatory"})

    assert not set(psutil.Process().children(recursive=True)) - before


def test_a_virtualenv_is_looked_for_beside_the_pack(tmp_path: Path) -> None:
    (tmp_path / "venv").symlink_to(sys.prefix)
    manifest = "runtime:\n  name: python\n  options:\n    virtualenv: ../venv\n"

    running = start(write_pack(tmp_path / "p", RULES, manifest))

    try:
        assert (running.name, running.version) == ("sample", "0.0.1")
    finally:
        running.close()


# Recorded with the CLI 3.260: its requests to the analyzer for a Service, by itself and as a part of the stack.

KUBECONFIG = {
    "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
    "value": "kubeconfig",
}
RECORDED_PROVIDER = {
    "type": "pulumi:providers:kubernetes",
    "properties": {"kubeconfig": KUBECONFIG, "version": "4.32.0"},
    "urn": "urn:pulumi:dev::sample::pulumi:providers:kubernetes::cluster",
    "name": "cluster",
}
RECORDED: dict[str, Any] = {
    "type": "kubernetes:core/v1:Service",
    "properties": {"spec": {"ports": [{"port": 80.0}], "type": "LoadBalancer"}},
    "urn": "urn:pulumi:dev::sample::kubernetes:core/v1:Service::web",
    "name": "web",
    "options": {
        "deleteBeforeReplace": True,
        "deleteBeforeReplaceDefined": True,
        "customTimeouts": {},
        "parent": "urn:pulumi:dev::sample::pulumi:pulumi:Stack::sample-dev",
    },
    "provider": RECORDED_PROVIDER,
}


def recorded_service() -> AnalyzedResource:
    return AnalyzedResource(
        type="kubernetes:core/v1:Service",
        urn="urn:pulumi:dev::sample::kubernetes:core/v1:Service::web",
        name="web",
        properties={"__inputs": {}, "spec": {"ports": [{"port": 80}], "type": "LoadBalancer"}},
        options=AnalyzedOptions(delete_before_replace=True),
        provider=AnalyzedProvider(
            "pulumi:providers:kubernetes",
            "urn:pulumi:dev::sample::pulumi:providers:kubernetes::cluster",
            "cluster",
            {"__internal": {}, "kubeconfig": Secret("kubeconfig"), "version": "4.32.0"},
        ),
        parent="urn:pulumi:dev::sample::pulumi:pulumi:Stack::sample-dev",
        dependencies=("urn:a",),
        property_dependencies={"spec": ["urn:a"], "kind": []},
    )


def test_the_request_for_a_resource_is_the_clis() -> None:
    assert MessageToDict(analyze_request(recorded_service(), internal_keys=False)) == RECORDED


def test_the_request_for_a_resource_of_a_stack_is_the_clis() -> None:
    assert MessageToDict(stack_resource(recorded_service())) == RECORDED | {
        "parent": "urn:pulumi:dev::sample::pulumi:pulumi:Stack::sample-dev",
        "dependencies": ["urn:a"],
        "propertyDependencies": {"spec": {"urns": ["urn:a"]}},
    }

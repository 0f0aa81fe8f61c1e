"""The pytest plugin, with a pack that is not ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.example_program import ROOT

pytestmark = pytest.mark.integration

PACK = """
from pulumi_policy import EnforcementLevel, PolicyConfigSchema, PolicyPack, ResourceValidationPolicy
from pulumi_policy import StackValidationPolicy

def acl(args, report):
    if args.resource_type == "t:index:Bucket" and args.props["acl"] == args.get_config()["forbidden"]:
        report("the bucket is open")

def trim(args):
    return {**args.props, "name": args.props["name"].strip()} if "name" in args.props else None

def key(args, report):
    for each in args.resources:
        if each.resource_type == "t:index:Bucket" and not each.dependencies:
            report("no key", each.urn)

PolicyPack("theirs", [
    ResourceValidationPolicy("bucket-private", "Private.", acl, enforcement_level=EnforcementLevel.MANDATORY,
        config_schema=PolicyConfigSchema({"forbidden": {"type": "string", "default": "public"}})),
    ResourceValidationPolicy("bucket-name", "Trimmed.", remediate=trim, enforcement_level=EnforcementLevel.REMEDIATE),
    StackValidationPolicy("bucket-key", "Encrypted.", key, enforcement_level=EnforcementLevel.ADVISORY),
])
"""
TESTS = """
from cloud_stacks.pytest_policies import Resource, Secret, Unknown

KEY = Resource("t:index:Key", {}, "key")

def bucket(acl, **more):
    return Resource("t:index:Bucket", {"acl": acl, **more}, "b", depends_on=[KEY])

def found(findings):
    return [(finding.policy, finding.level, finding.message) for finding in findings]

def test_a_violation(policy_pack):
    assert found(policy_pack.check(KEY, bucket("public"))) == [("bucket-private", "mandatory", "the bucket is open")]

def test_what_passes(policy_pack):
    assert policy_pack.check(KEY, bucket("private")) == []

def test_an_unknown_value(policy_pack):
    [finding] = policy_pack.check(KEY, bucket(Unknown))
    assert finding.level == "not-evaluated"

def test_a_secret_value(policy_pack):
    assert len(policy_pack.check(KEY, bucket(Secret("public")))) == 1

def test_a_rule_about_the_stack(policy_pack):
    lonely = Resource("t:index:Bucket", {"acl": "private"}, "lonely")
    assert [(finding.policy, finding.urn) for finding in policy_pack.check(lonely)] == [("bucket-key", lonely.urn)]

def test_a_remediation(policy_pack):
    assert policy_pack.remediate(bucket("private", name=" a "))["name"] == "a"

def test_settings(start_policy_pack):
    pack = start_policy_pack({"bucket-private": {"forbidden": "private"}})
    assert len(pack.check(KEY, bucket("private"))) == 1
"""


def run(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    pack = folder / "rules"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (pack / "__main__.py").write_text(PACK)
    (folder / "pytest.ini").write_text("[pytest]\npolicy_pack = rules\n")
    (folder / "test_rules.py").write_text(tests)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "cloud_stacks.pytest_policies", "-p", "no:cacheprovider"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_a_foreign_pack_is_tested_by_the_real_analyzer_server(tmp_path: Path) -> None:
    done = run(tmp_path, TESTS)

    assert "7 passed" in done.stdout, done.stdout + done.stderr


def test_a_wrong_expectation_fails(tmp_path: Path) -> None:
    done = run(tmp_path, TESTS.replace('assert policy_pack.check(KEY, bucket("private")) == []', "assert False"))

    assert "1 failed, 6 passed" in done.stdout


def test_a_folder_without_a_pack_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, 'def test_it(start_policy_pack):\n    start_policy_pack(folder="nowhere")\n')

    assert f"{tmp_path / 'nowhere'} is not a policy pack: PulumiPolicy.yaml: No such file or directory" in done.stdout

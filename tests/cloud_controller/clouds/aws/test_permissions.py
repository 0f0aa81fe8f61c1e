"""The rights in AWS: exactly the operations that the code calls, on what is the cluster's, and nothing else."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import botocore.loaders
import pytest

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds import aws
from cloud_controller.clouds.aws.config import SERVICES
from cloud_controller.clouds.aws.permissions import CONTROLLERS, RIGHTS, When, statements

TAG = "kubernetes.io/cluster/prod-1"
NO_CALLS = {"permissions.py", "client.py"}
"""The table itself, and the patterns of names by which calls are repeated."""


@lru_cache
def operations_of(service: str) -> frozenset[str]:
    """All operations that boto3 knows of a service."""
    return frozenset(botocore.loaders.create_loader().load_service_model(service, "service-2")["operations"])


def called() -> dict[tuple[str, str], str]:
    """Every operation that the code can call, and a module that does.

    A name that is handed on to a helper counts for each service that a helper of the module calls so.
    """
    found: dict[tuple[str, str], str] = {}
    for path in sorted(Path(aws.__file__).parent.glob("*.py")):
        if path.name in NO_CALLS:
            continue
        tree = ast.parse(path.read_text())
        handing_on: set[str] = set()
        for service, operation in _calls(tree):
            if operation is None:
                handing_on.add(service)
            else:
                found[service, operation] = path.name
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for service in handing_on:
                    if node.value in operations_of(service):
                        found[service, node.value] = path.name
    return found


def _calls(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in ("call", "pages") or "api" not in ast.unparse(node.func.value):
            continue
        service, operation = node.args[:2]
        assert isinstance(service, ast.Constant), f"the service must stand in the call: {ast.unparse(node)}"
        yield str(service.value), str(operation.value) if isinstance(operation, ast.Constant) else None


def actions(found: Collection[dict[str, Any]]) -> set[str]:
    return {action for statement in found for action in statement["Action"]}


def statement_of(action: str, resource: str, controllers: Collection[str] = CONTROLLERS) -> dict[str, Any]:
    (found,) = (
        statement
        for statement in statements(controllers, "prod-1")
        if action in statement["Action"] and any(resource in each for each in statement["Resource"])
    )
    return found


# -------------------------------------------------------------------------------------------------- table and code


def test_everything_that_the_code_calls_is_in_the_table() -> None:
    known = {(right.service, operation) for right in RIGHTS for operation in right.operations}

    assert {call: module for call, module in called().items() if call not in known} == {}


def test_nothing_is_in_the_table_that_the_code_does_not_call() -> None:
    known = {(right.service, operation) for right in RIGHTS for operation in right.operations}

    assert known - called().keys() == set()


def test_every_service_that_is_called_may_have_an_endpoint_of_its_own() -> None:
    assert {service for service, _ in called()} == {*SERVICES}


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: f"{right.service}-{right.operations[0]}-{right.when.name}")
def test_the_table_names_operations_as_aws_does(right: Any) -> None:
    assert {*right.operations} <= operations_of(right.service)
    assert {*right.controllers} <= {*CONTROLLERS}


# ------------------------------------------------------------------------------------------------------- least rights


def test_no_right_is_a_pattern_and_none_is_for_another_service() -> None:
    found = actions(statements(CONTROLLERS, "prod-1"))

    assert all(re.fullmatch(r"(ec2|elasticloadbalancing|servicequotas|iam):[A-Za-z]+", action) for action in found)


def test_only_reads_are_allowed_on_everything() -> None:
    everywhere = [each for each in statements(CONTROLLERS, "prod-1") if each["Resource"] == ["*"]]

    assert all(re.match(r"\w+:(Describe|Get)", action) for action in actions(everywhere))


def test_what_is_changed_carries_the_clusters_tag_or_gets_it() -> None:
    untagged = {
        (action, *statement["Resource"])
        for statement in statements(CONTROLLERS, "prod-1")
        for action in statement["Action"]
        if not re.match(r"\w+:(Describe|Get)", action) and TAG not in str(statement.get("Condition"))
    }

    roles = "arn:aws:iam::*:role/aws-service-role/elasticloadbalancing.amazonaws.com"
    assert untagged == {
        ("ec2:CreateSecurityGroup", "arn:aws:ec2:*:*:vpc/*"),
        ("iam:CreateServiceLinkedRole", f"{roles}/AWSServiceRoleForElasticLoadBalancing"),
    }


def test_nothing_that_exists_can_be_given_the_clusters_tag() -> None:
    for action in ("ec2:CreateTags", "elasticloadbalancing:AddTags"):
        for statement in statements(CONTROLLERS, "prod-1"):
            if action in statement["Action"]:
                condition = str(statement["Condition"])
                assert f"aws:ResourceTag/{TAG}" in condition or "CreateAction" in condition


def test_a_route_is_written_in_the_clusters_table_alone() -> None:
    assert statement_of("ec2:CreateRoute", "route-table") == {
        "Effect": "Allow",
        "Action": ["ec2:CreateRoute", "ec2:DeleteRoute"],
        "Resource": ["arn:aws:ec2:*:*:route-table/*"],
        "Condition": {"Null": {f"aws:ResourceTag/{TAG}": "false"}},
    }


def test_of_a_machine_nothing_is_changed_but_its_check_of_sources_which_is_switched_off() -> None:
    assert statement_of("ec2:ModifyInstanceAttribute", "instance/*") == {
        "Effect": "Allow",
        "Action": ["ec2:ModifyInstanceAttribute"],
        "Resource": ["arn:aws:ec2:*:*:instance/*"],
        "Condition": {
            "Null": {f"aws:ResourceTag/{TAG}": "false"},
            "StringEqualsIgnoreCase": {"ec2:Attribute/SourceDestCheck": "false"},
        },
    }


def test_a_load_balancer_is_made_with_the_clusters_tag() -> None:
    assert statement_of("elasticloadbalancing:CreateLoadBalancer", "loadbalancer/*")["Condition"] == {
        "Null": {f"aws:RequestTag/{TAG}": "false"}
    }


def test_listeners_are_changed_and_made_on_load_balancers_with_the_clusters_tag_alone() -> None:
    for action, resource in (("CreateListener", ":loadbalancer/"), ("DeleteListener", ":listener/net/")):
        assert statement_of(f"elasticloadbalancing:{action}", resource)["Condition"] == {
            "Null": {f"aws:ResourceTag/{TAG}": "false"}
        }


def test_load_balancing_may_look_at_what_it_asks_for_in_its_callers_name() -> None:
    # Elastic Load Balancing's user guide, "API permissions": CreateLoadBalancer, CreateTargetGroup, RegisterTargets.
    needed = {"AccountAttributes", "Addresses", "Instances", "InternetGateways", "SecurityGroups", "Subnets", "Vpcs"}

    assert {f"ec2:Describe{each}" for each in needed} <= actions(statements(["service"], "prod-1"))


def test_load_balancing_may_look_which_security_groups_fit_the_vpc() -> None:
    # The managed policies ElasticLoadBalancingFullAccess and AmazonEKSLoadBalancingPolicy allow it.
    assert "ec2:GetSecurityGroupsForVpc" in actions(statements(["service"], "prod-1"))
    assert "ec2:GetSecurityGroupsForVpc" not in actions(statements(["node", "node-lifecycle", "route"], "prod-1"))


def test_a_controller_that_is_not_run_brings_no_rights() -> None:
    assert actions(statements(["node"], "prod-1")) == {
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeInstanceTopology",
        "ec2:DescribeInstances",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
    }
    assert not any("elasticloadbalancing" in action for action in actions(statements(["node", "route"], "prod-1")))
    assert "ec2:CreateRoute" not in actions(statements(["node", "node-lifecycle", "service"], "prod-1"))


def test_doctor_may_do_all_that_its_controllers_read_and_nothing_else() -> None:
    [found] = statements(["service"], "prod-1", reads=True)

    called = {a for right in RIGHTS if {*right.controllers} & {"service", "node"} for a in right.actions}
    changed = {a for s in statements(["service"], "prod-1") if s["Resource"] != ["*"] for a in s["Action"]}
    assert found == {"Effect": "Allow", "Action": sorted(called - changed), "Resource": ["*"]}
    # Also where no controller of nodes runs, as on EKS: every look begins with the machines.
    assert {"elasticloadbalancing:DescribeLoadBalancers", "ec2:DescribeInstances"} <= {*found["Action"]}


def test_what_only_doctor_calls_is_doctors_or_of_a_ccm_whose_role_doctor_takes() -> None:
    limits = "elasticloadbalancing:DescribeAccountLimits"

    assert limits not in actions(statements(["service"], "prod-1"))
    assert limits in actions(statements(["service"], "prod-1", doctor=True))
    assert limits in actions(statements(["service"], "prod-1", reads=True))
    assert limits not in actions(statements(["node"], "prod-1", reads=True))


def test_arns_are_of_the_partition() -> None:
    found = statements(CONTROLLERS, "prod-1", partition="aws-cn")

    assert {arn.split(":")[1] for each in found for arn in each["Resource"] if arn != "*"} == {"aws-cn"}


def test_what_is_no_controller_here_is_told() -> None:
    with pytest.raises(InvalidConfiguration, match="'volume' is not a controller on AWS"):
        statements(["node", "volume"], "prod-1")


def test_a_policy_fits_into_one_of_iam() -> None:
    # IAM: 6,144 characters without white space.
    document = {"Version": "2012-10-17", "Statement": statements(CONTROLLERS, "a" * 100, doctor=True)}

    assert len(json.dumps(document, separators=(",", ":"))) < 6144


def test_each_condition_is_used() -> None:
    assert {right.when for right in RIGHTS} == {*When}

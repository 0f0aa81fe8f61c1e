"""The rights in RAM: exactly the actions that the code calls, sent as the SDK sends them."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds import alicloud
from cloud_controller.clouds.alicloud.names import VERSIONS
from cloud_controller.clouds.alicloud.permissions import CONTROLLERS, RIGHTS, actions, policy, statements
from cloud_controller.clouds.alicloud.requests import query_and_form

ACTION = re.compile(
    "(Add|Associate|Attach|Create|Delete|Describe|Detach|Disable|Disassociate|Enable|Get|List|LoadBalancer|Modify|Move"
    "|Remove|Set|Start|Stop|Tag|Untag|Update)[A-Z][A-Za-z0-9]+"
)
NO_CALLS = {"permissions.py", "requests.py", "patience.py"}
"""Tables of actions, and a client that passes on what others call."""
PACKAGES = {
    "ecs": "alibabacloud_ecs20140526",
    "vpc": "alibabacloud_vpc20160428",
    "slb": "alibabacloud_slb20140515",
    "nlb": "alibabacloud_nlb20220430",
    "sts": "alibabacloud_sts20150401",
}
UNLIKE_THE_SDK = {("sts", "AssumeRoleWithOIDC")}
"""Its token must not be in a URL."""

KNOWN = {(right.product, action) for right in RIGHTS for action in right.actions}


@lru_cache
def methods(product: str) -> dict[str, str]:
    """The source of the SDK's method for each action."""
    spec = importlib.util.find_spec(PACKAGES[product])
    assert spec is not None and spec.origin is not None
    parts = re.split(r"\n    (?:async )?def ", Path(spec.origin).with_name("client.py").read_text())
    return {found[1]: part for part in parts if (found := re.search(r"action = '(\w+)'", part))}


def called() -> Iterator[tuple[str, str]]:
    """Every action that the code can call.

    An action that is handed on to a helper counts for each product that the helpers of its package call so.
    """
    root = Path(alicloud.__file__).parent
    for folder in (root, *(each for each in root.iterdir() if each.is_dir())):
        trees = [ast.parse(path.read_text()) for path in sorted(folder.glob("*.py")) if path.name not in NO_CALLS]
        handing_on: set[str] = set()
        for product, action in (each for tree in trees for each in _calls(tree)):
            if action is None:
                handing_on.add(product)
            else:
                yield product, action
        for node in (node for tree in trees for node in ast.walk(tree)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ACTION.fullmatch(node.value):
                yield from ((product, node.value) for product in handing_on if node.value in methods(product))


def _calls(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr in ("call", "pages") and "client" in ast.unparse(node.func.value):
            product, action = node.args[:2]
            assert isinstance(product, ast.Constant), f"the product must stand in the call: {ast.unparse(node)}"
            yield str(product.value), str(action.value) if isinstance(action, ast.Constant) else None


# -------------------------------------------------------------------------------------------------- table and code


def test_everything_that_the_code_calls_is_in_the_table() -> None:
    assert {*called()} - KNOWN == set()


def test_nothing_is_in_the_table_that_the_code_does_not_call() -> None:
    assert KNOWN - {*called()} == set()


@pytest.mark.parametrize(
    ("product", "action"), sorted(each for each in KNOWN if each[0] in PACKAGES and each not in UNLIKE_THE_SDK)
)
def test_an_action_is_sent_as_the_sdk_sends_it(product: str, action: str) -> None:
    source = methods(product)[action]
    places: dict[str, dict[str, Any]] = {"query": {}, "body": {}}
    for place, name in re.findall(r"(query|body)(?:_flat)?\['(\w+)'\]", source):
        places[place][name] = {"a": [1, 2]} if f"'{name}', 'json'" in source else "x"
    given = {name: value for name, value in {**places["query"], **places["body"]}.items() if name != "RegionId"}

    query, form = query_and_form(product, action, given, "cn-hangzhou")

    assert {name.partition(".")[0] for name in query} == places["query"].keys()
    assert {name.partition(".")[0] for name in form} == places["body"].keys()
    as_json = {name for name, value in given.items() if value != "x"}
    assert {name for name, value in {**query, **form}.items() if value == '{"a":[1,2]}'} == as_json
    assert f"version = '{VERSIONS[product]}'" in source


# ------------------------------------------------------------------------------------------------------- least rights


def test_a_policy_allows_what_its_controllers_call_and_nothing_else() -> None:
    (statement,) = policy("cn-hangzhou", ["node"])["Statement"]

    assert statement == {
        "Effect": "Allow",
        "Action": ["ecs:DescribeInstanceAttribute", "ecs:DescribeInstances"],
        "Resource": ["*"],
    }


def test_only_the_route_controller_may_change_routes_and_interfaces() -> None:
    changing = [
        action for action in actions(["node", "node-lifecycle"]) if not re.match(r"\w+:(Describe|Get|List)", action)
    ]

    assert changing == []
    assert {"vpc:CreateRouteEntries", "ecs:ModifyNetworkInterfaceAttribute"} <= {*actions(["route"])}


def test_doctor_may_do_all_that_its_controllers_read_and_see_quotas_and_nothing_else() -> None:
    [found] = statements("cn-hangzhou", ["service", "route"], reads=True)

    read = policy("cn-hangzhou", ["service", "route"])["Statement"][0]["Action"]
    assert found["Action"] == sorted([*read, "quotas:ListProductQuotaDimensions"])
    assert found["Resource"] == ["*"]
    assert all(re.match(r"\w+:(Describe|Get|List)", action) for action in found["Action"])


def test_quotas_of_load_balancers_are_doctors_alone_to_see() -> None:
    (reads, *_), (with_doctor, *_) = (statements("cn-hangzhou", ["service"], doctor=each) for each in (False, True))

    assert [each for each in with_doctor["Action"] if each not in reads["Action"]] == [
        "quotas:GetProductQuota",
        "quotas:ListProductQuotaDimensions",
    ]


def test_no_right_is_a_pattern() -> None:
    assert all(re.fullmatch(r"(ecs|vpc|slb|nlb|quotas):[A-Za-z0-9]+", action) for action in actions())


def test_an_unknown_controller_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="volume"):
        policy("cn-hangzhou", [*CONTROLLERS, "volume"])


def test_a_policy_allows_changes_only_in_its_region() -> None:
    reads, *writes = policy("cn-hangzhou")["Statement"]

    assert all(re.match(r"\w+:(Describe|Get|List)", action) for action in reads["Action"])
    assert [each["Resource"] for each in writes] == [
        [f"acs:{product}:cn-hangzhou:*:*"] for product in ("ecs", "nlb", "slb", "vpc")
    ]
    for each in writes:
        product = each["Resource"][0].split(":")[1]
        assert all(action.startswith(f"{product}:") for action in each["Action"])
    found = [action for each in (reads, *writes) for action in each["Action"]]
    assert sorted(found) == actions()

"""The schemas that are read from the SDK's source are those of its classes."""

from __future__ import annotations

import importlib
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.alicloud.cloud import ACTIONS
from local.alicloud.products import BY_VERSION, NLB, SLB, TABLE, actions_of
from local.alicloud.sdk import Sdk, UnknownAction

PRODUCTS = sorted((each for each in BY_VERSION.values() if each.package), key=lambda product: product.name)
PLAIN = {str: "string", int: "integer", bool: "boolean", float: "number"}


class Probe:
    """A value of any type: what a model's `to_map` makes of it has the name on the wire."""

    def to_map(self) -> Probe:
        return self

    def __iter__(self) -> Iterator[Probe]:
        return iter([self])

    def items(self) -> list[tuple[str, Probe]]:
        return [("key", self)]


def wire_names(kind: Any) -> dict[str, Any]:
    """The type of each parameter of a class of the SDK, by its name on the wire."""
    names = {}
    for attribute, hint in typing.get_type_hints(kind.__init__).items():
        model = kind()
        setattr(model, attribute, Probe())
        (name,) = (name for name, value in model.to_map().items() if value)
        names[name] = hint
    return names


def test_an_action_that_the_sdk_does_not_know_is_refused_when_it_is_registered() -> None:
    with pytest.raises(UnknownAction, match="has no action DescribeLoadBalancerz"):
        SLB.action("DescribeLoadBalancerz")


def test_a_missing_sdk_package_is_reported() -> None:
    with pytest.raises(ModuleNotFoundError, match="alibabacloud_none is not installed"):
        Sdk("alibabacloud_none")


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_the_names_and_types_on_the_wire_are_those_of_the_sdks_classes(product: Any) -> None:
    models = importlib.import_module(f"{product.package}.models")

    for action in actions_of(product):
        for kind, schema in (
            (f"{action}Request", product.sdk.request_schema(action)),
            (f"{action}ResponseBody", product.sdk.answer_schema(action)),
        ):
            names = wire_names(getattr(models, kind)) if hasattr(models, kind) else {}
            plain = {name: {"type": PLAIN[hint]} for name, hint in names.items() if hint in PLAIN}
            assert schema["properties"].keys() == names.keys(), kind
            assert {name: schema["properties"][name] for name in plain} == plain, kind


def test_every_action_that_is_simulated_is_in_the_table() -> None:
    assert ACTIONS
    assert sum(len(actions_of(product)) for product in BY_VERSION.values()) == len(TABLE.actions)


def test_the_page_lists_every_action_that_is_simulated() -> None:
    page = (Path(__file__).parents[3] / "docs" / "simulated-alicloud.md").read_text()
    rows = dict(re.findall(r"^\| (\w+) \| \d\d\d\d-\d\d-\d\d \| (.*) \|$", page, re.MULTILINE))

    assert {product: row.split(", ") for product, row in rows.items()} == {
        product.name: actions_of(product) for product in BY_VERSION.values()
    }


def test_the_place_of_a_parameter_is_the_sdks() -> None:
    assert "LoadBalancerName" in (NLB.sdk.in_form("CreateLoadBalancer") or ())
    assert not SLB.sdk.in_form("CreateLoadBalancer")
    assert NLB.sdk.as_json("CreateListener") == {"ProxyProtocolV2Config"}


def test_required_parameters_are_those_that_the_sdk_names() -> None:
    assert SLB.sdk.request_schema("CreateLoadBalancerTCPListener")["required"] == [
        "Bandwidth",
        "ListenerPort",
        "LoadBalancerId",
    ]

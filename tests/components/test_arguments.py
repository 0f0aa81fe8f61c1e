"""Components' arguments: what is mistyped is refused by its name, before anything is registered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

import pulumi
import pytest

from components.arguments import checked
from components.inputs import WrongInput


@pytest.fixture(autouse=True)
def event_loop() -> Iterator[None]:
    """An Output needs one, and a test before may have left none."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()


class Part(TypedDict):
    size: pulumi.Input[int | str]
    fast: NotRequired[pulumi.Input[bool]]


class Whole(TypedDict):
    kind: str
    parts: Sequence[Part]
    ranges: NotRequired[pulumi.Input[Sequence[pulumi.Input[str]]]]
    labels: NotRequired[Mapping[str, pulumi.Input[str]]]
    mode: NotRequired[pulumi.Input[Literal["a", "b"]]]


def whole(**more: Any) -> Any:
    return {"kind": "x", "parts": [{"size": 1}], **more}


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (None, "args: is of type NoneType; allowed: a dictionary of kind, parts, ranges, labels, mode"),
        ({"parts": []}, "kind: is missing"),
        (whole(kind=None), "kind: is missing"),
        (whole(range=["10.0.0.0/8"]), "range: unknown argument; did you mean ranges? allowed: kind, parts, ranges"),
        (whole(kind=["x"]), "kind: is of type list; allowed: text"),
        (whole(parts={"size": 1}), "parts: is of type dict; allowed: a list"),
        (whole(parts=["one"]), "parts[0]: is of type str; allowed: a dictionary of size, fast"),
        (whole(parts=[{"size": 1}, {"sise": 1}]), "parts[1].sise: unknown argument; did you mean size?"),
        (whole(parts=[{"size": True}]), "parts[0].size: is of type bool; allowed: a whole number, text"),
        (whole(parts=[{"size": 1, "fast": "no"}]), "parts[0].fast: is of type str; allowed: True, False"),
        (whole(ranges="10.0.0.0/8"), "ranges: is of type str; allowed: a list"),
        (whole(ranges=["10.0.0.0/8", 10]), "ranges[1]: is of type int; allowed: text"),
        (whole(labels=["a"]), "labels: is of type list; allowed: a dictionary"),
        (whole(labels={"a": 1}), "labels[a]: is of type int; allowed: text"),
        (whole(mode="c"), "mode: 'c'; allowed: a, b"),
    ],
)
def test_a_mistyped_argument_is_refused_by_its_name(args: Any, line: str) -> None:
    with pytest.raises(WrongInput) as caught:
        checked(Whole, args)

    assert str(caught.value).startswith(line)


@pytest.mark.parametrize("name", ["kind", "parts", "labels"])
def test_an_argument_that_decides_which_resources_exist_must_not_be_an_output(name: str) -> None:
    with pytest.raises(WrongInput, match=f"{name}: is an output; allowed: a plain value"):
        checked(Whole, whole(**{name: pulumi.Output.from_input("x")}))


def test_an_output_may_stand_wherever_an_input_may() -> None:
    output: Any = pulumi.Output.from_input("x")
    given = whole(parts=[{"size": output}], ranges=output, labels={"a": output}, mode=output)

    assert checked(Whole, given) == given
    assert checked(Whole, whole(ranges=[output]))["ranges"] == [output]


def test_an_argument_of_none_counts_as_not_given() -> None:
    """As everywhere in Pulumi: what a program's optional config says may be handed on."""
    given = whole(ranges=None, mode=None, labels={"a": "b", "c": None}, parts=[{"size": 1, "fast": None}])

    assert checked(Whole, given) == whole(labels={"a": "b"})


def test_a_refusal_never_shows_a_value_of_the_wrong_type() -> None:
    with pytest.raises(WrongInput) as caught:
        checked(Whole, whole(kind=b"a-token"))

    assert "a-token" not in str(caught.value)


def test_a_program_ends_with_a_refusal_as_one_line() -> None:
    """The SDK prints no traceback for a RunError, and `path: reason` is what it prints."""
    refused = WrongInput("ports[0].port", "0; allowed: 1 to 65535")

    assert isinstance(refused, pulumi.RunError)
    assert isinstance(refused, pulumi.InputPropertyError)
    assert str(refused) == "ports[0].port: 0; allowed: 1 to 65535"

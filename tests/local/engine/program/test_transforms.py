"""Transforms: a registration is what the program's functions make of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pulumi
import pytest
from pulumi import Output, ResourceOptions, ResourceTransformArgs, ResourceTransformResult
from pulumi.runtime import register_invoke_transform, register_resource_transform

pytestmark = pytest.mark.engine

Transform = Callable[[ResourceTransformArgs], ResourceTransformResult | None]


def adding(word: str) -> Transform:
    """A transform that appends a word to the property `words`."""

    def transform(args: ResourceTransformArgs) -> ResourceTransformResult:
        words = [*cast(list[str], args.props.get("words", [])), word]
        return ResourceTransformResult({**args.props, "words": words}, args.opts)

    return transform


def setting(**options: Any) -> Transform:
    """A transform that changes options."""

    def transform(args: ResourceTransformArgs) -> ResourceTransformResult:
        for name, value in options.items():
            setattr(args.opts, name, value)
        return ResourceTransformResult(args.props, args.opts)

    return transform


def test_the_resources_own_transforms_run_first_then_its_parents_then_the_stacks(stack: Any, kit: Any) -> None:
    def program() -> None:
        register_resource_transform(adding("stack"))
        outer = kit.Group("outer", ResourceOptions(transforms=[adding("outer")]))
        inner = kit.Group("inner", ResourceOptions(parent=outer, transforms=[adding("inner")]))
        kit.Thing("machine", ResourceOptions(parent=inner, transforms=[adding("own"), adding("own too")]))

    assert stack.up(program).ok
    inputs = {name: resource.inputs for name, resource in stack.resources().items()}
    assert inputs["machine"] == {"words": ["own", "own too", "inner", "outer", "stack"]}
    assert inputs["inner"] == {"words": ["inner", "outer", "stack"]}
    assert stack.cloud.objects["machine-a"] == inputs["machine"]


def test_a_transform_sees_type_name_and_kind_and_may_leave_all_as_it_is(stack: Any, kit: Any) -> None:
    seen = []

    def look(args: ResourceTransformArgs) -> None:
        seen.append((args.type_, args.name, args.custom, args.props))

    def program() -> None:
        register_resource_transform(look)
        kit.Thing("machine", ResourceOptions(parent=kit.Group("group")), size=1)

    assert stack.up(program).ok
    assert seen == [
        ("test:index:Group", "group", False, {}),
        ("memory:index:Thing", "machine", True, {"size": 1}),
    ]
    assert stack.resources()["machine"].inputs == {"size": 1}


def test_a_resource_registered_before_a_stack_transform_is_not_transformed(stack: Any, kit: Any) -> None:
    def program() -> None:
        kit.Thing("before")
        register_resource_transform(adding("stack"))
        kit.Thing("after")

    assert stack.up(program).ok
    assert stack.cloud.objects == {"before-a": {}, "after-a": {"words": ["stack"]}}


@pytest.mark.parametrize(
    ("options", "field", "expected"),
    [
        ({"protect": True}, "protect", True),
        ({"retain_on_delete": True}, "retain_on_delete", True),
        ({"ignore_changes": ["size"]}, "ignore_changes", ("size",)),
        ({"replace_on_changes": ["size"]}, "replace_on_changes", ("size",)),
        ({"additional_secret_outputs": ["address"]}, "additional_secret_outputs", ("address",)),
        ({"custom_timeouts": pulumi.CustomTimeouts(create="90s")}, "timeouts.create", 90.0),
    ],
)
def test_a_transform_may_set_options(
    stack: Any, kit: Any, options: dict[str, Any], field: str, expected: object
) -> None:
    assert stack.up(lambda: kit.Thing("machine", ResourceOptions(transforms=[setting(**options)]))).ok
    found = stack.resources()["machine"]
    for name in field.split("."):
        found = getattr(found, name)
    assert found == expected


def test_a_transform_may_remove_an_option(stack: Any, kit: Any) -> None:
    def program() -> None:
        kit.Thing("machine", ResourceOptions(protect=True, ignore_changes=["size"], transforms=[unprotect]))

    unprotect = setting(protect=None, ignore_changes=None)
    assert stack.up(program).ok
    machine = stack.resources()["machine"]
    assert not machine.protect and machine.ignore_changes == ()


def test_a_transform_may_set_delete_before_replace(stack: Any, kit: Any) -> None:
    deleting = setting(delete_before_replace=True)

    def program(kind: str) -> Callable[[], object]:
        return lambda: kit.Thing("machine", ResourceOptions(transforms=[deleting]), kind=kind)

    stack.up(program("a"))
    stack.cloud.calls.clear()
    assert stack.up(program("b")).ok
    assert stack.cloud.asked("create", "delete") == ["delete machine", "create machine"]


def test_a_transform_may_add_a_dependency(stack: Any, kit: Any) -> None:
    def program() -> None:
        network = kit.Thing("network")
        kit.Thing("machine", ResourceOptions(transforms=[setting(depends_on=[network])]))

    assert stack.up(program).ok
    resources = stack.resources()
    assert resources["machine"].dependencies == (resources["network"].urn,)
    stack.cloud.calls.clear()
    assert stack.destroy().ok
    assert stack.cloud.asked("delete") == ["delete machine", "delete network"]


def test_a_transform_may_add_an_alias(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("old", size=1))
    stack.cloud.calls.clear()

    named = setting(aliases=[pulumi.Alias(name="old")])
    assert stack.up(lambda: kit.Thing("new", ResourceOptions(transforms=[named]), size=1)).ok

    assert stack.cloud.asked("create", "delete") == []
    assert stack.resources()["new"].id == "old-a"


def test_a_transform_may_import_an_object(stack: Any, kit: Any) -> None:
    stack.cloud.objects["given"] = {"size": 1}
    named = setting(import_="given")
    assert stack.up(lambda: kit.Thing("machine", ResourceOptions(transforms=[named]), size=1)).ok
    assert stack.resources()["machine"].id == "given" and stack.cloud.asked("create") == []


def test_a_transform_may_set_replace_with_and_deleted_with(stack: Any, kit: Any) -> None:
    def program() -> None:
        network = kit.Thing("network")
        kit.Thing("machine", ResourceOptions(transforms=[setting(replace_with=[network], deleted_with=network)]))

    assert stack.up(program).ok
    resources = stack.resources()
    machine, network = resources["machine"], resources["network"]
    assert (machine.replace_with, machine.deleted_with) == ((network.urn,), network.urn)


class Cloud(pulumi.ProviderResource):
    """A provider instance of the in-memory cloud."""

    def __init__(self, name: str) -> None:
        super().__init__("memory", name, {})


def test_a_transform_may_set_a_components_providers_which_its_children_inherit(stack: Any, kit: Any) -> None:
    def program() -> None:
        options = ResourceOptions(transforms=[only_of("group", setting(providers={"memory": Cloud("elsewhere")}))])
        kit.Thing("machine", ResourceOptions(parent=kit.Group("group", options)))

    assert stack.up(program).ok
    assert "::elsewhere::" in stack.resources()["machine"].provider


def only_of(name: str, transform: Transform) -> Transform:
    """The transform for the resource of that name alone."""
    return lambda args: transform(args) if args.name == name else None


def test_a_transform_may_set_the_provider(stack: Any, kit: Any) -> None:
    def program() -> None:
        kit.Thing("machine", ResourceOptions(transforms=[setting(provider=Cloud("elsewhere"))]))

    assert stack.up(program).ok
    assert "::elsewhere::" in stack.resources()["machine"].provider


def test_a_transform_may_change_a_secret_which_stays_secret(stack: Any, kit: Any) -> None:
    def longer(args: ResourceTransformArgs) -> ResourceTransformResult:
        token = Output.from_input(args.props["token"]).apply(lambda text: f"{text}-and-more")
        return ResourceTransformResult({**args.props, "token": token}, args.opts)

    def program() -> None:
        kit.Thing("machine", ResourceOptions(transforms=[longer]), token=Output.secret("hunter2"), size=1)

    assert stack.up(program).ok
    assert stack.cloud.objects["machine-a"] == {"token": "hunter2-and-more", "size": 1}
    assert "hunter2" not in stack.files()


def test_a_transform_may_make_a_plain_value_secret(stack: Any, kit: Any) -> None:
    def hide(args: ResourceTransformArgs) -> ResourceTransformResult:
        return ResourceTransformResult({**args.props, "token": Output.secret(args.props["token"])}, args.opts)

    assert stack.up(lambda: kit.Thing("machine", ResourceOptions(transforms=[hide]), token="hunter2")).ok
    assert stack.cloud.objects["machine-a"] == {"token": "hunter2"}
    assert "hunter2" not in stack.files()


def test_an_unknown_value_stays_unknown_through_every_transform(stack: Any, kit: Any) -> None:
    def program() -> None:
        register_resource_transform(adding("stack"))
        network = kit.Thing("network")
        options = ResourceOptions(transforms=[adding("own")])
        machine = kit.Thing("machine", options, net=network.address, deep={"nets": [network.address]})
        pulumi.export("net", machine.net)

    outcome = stack.preview(program)
    assert outcome.ok
    step = next(e.step for e in outcome.events if hasattr(e, "step") and e.step.urn.endswith("::machine"))
    assert step.new.inputs == {"net": kit.UNKNOWN, "deep": {"nets": [kit.UNKNOWN]}, "words": ["own", "stack"]}

    assert stack.up(program).ok
    address = "address of network-a"
    assert stack.cloud.objects["machine-a"] == {"net": address, "deep": {"nets": [address]}, "words": ["own", "stack"]}


def test_a_propertys_dependencies_survive_a_transform_that_drops_them(stack: Any, kit: Any) -> None:
    def program() -> None:
        network = kit.Thing("network")
        kit.Thing("machine", ResourceOptions(transforms=[adding("own")]), net=network.address)

    assert stack.up(program).ok
    resources = stack.resources()
    assert resources["machine"].property_dependencies["net"] == (resources["network"].urn,)


def test_a_transform_may_wait(stack: Any, kit: Any) -> None:
    async def slow(args: ResourceTransformArgs) -> ResourceTransformResult:
        size = await Output.from_input(args.props["size"]).future()
        return ResourceTransformResult({**args.props, "size": (size or 0) + 1}, args.opts)

    assert stack.up(lambda: kit.Thing("machine", ResourceOptions(transforms=[slow]), size=1)).ok
    assert stack.cloud.objects["machine-a"] == {"size": 2}


def test_a_failing_transform_fails_the_run_in_one_line_and_nothing_is_made(stack: Any, kit: Any) -> None:
    def broken(_args: ResourceTransformArgs) -> None:
        raise ValueError("no such colour")

    outcome = stack.up(lambda: kit.Thing("machine", ResourceOptions(transforms=[broken])))

    assert not outcome.ok
    assert outcome.errors == [f"a transform failed: no such colour (test_transforms.py:{line_of(broken)} in broken)"]
    assert stack.cloud.objects == {}


def test_an_unsupported_option_from_a_transform_is_refused(stack: Any, kit: Any) -> None:
    wrong = setting(custom_timeouts=pulumi.CustomTimeouts(create="soon"))
    outcome = stack.up(lambda: kit.Thing("machine", ResourceOptions(transforms=[wrong])))
    assert not outcome.ok and "'soon' is not a valid duration" in outcome.errors[-1]


def test_the_programs_own_message_is_not_changed(stack: Any, kit: Any) -> None:
    """The program's resource object keeps the program's values; outputs are the engine's."""
    sizes: list[int] = []

    def bigger(args: ResourceTransformArgs) -> ResourceTransformResult:
        return ResourceTransformResult({**args.props, "size": 9}, args.opts)

    def program() -> None:
        properties = {"size": 1}
        machine = kit.Thing("machine", ResourceOptions(transforms=[bigger]), **properties)
        machine.size.apply(sizes.append)
        assert properties == {"size": 1}

    assert stack.up(program).ok
    assert sizes == [9]


def test_transforms_apply_to_function_calls(stack: Any, kit: Any) -> None:
    found = []

    def elsewhere(args: pulumi.InvokeTransformArgs) -> pulumi.InvokeTransformResult:
        assert args.token == "pulumi:pulumi:getResource"
        urn = cast(str, args.args["urn"])
        return pulumi.InvokeTransformResult({"urn": urn.replace("nothing", "machine")}, args.opts)

    def program() -> None:
        register_invoke_transform(elsewhere)
        machine = kit.Thing("machine", size=3)
        asked = machine.urn.apply(
            lambda urn: (
                pulumi.runtime.invoke("pulumi:pulumi:getResource", {"urn": urn.replace("machine", "nothing")}).value
            )
        )
        asked.apply(lambda answer: found.append(answer["state"]["size"]))

    outcome = stack.up(program)
    assert outcome.errors == []
    assert found == [3]


def line_of(function: Callable[..., object]) -> int:
    return function.__code__.co_firstlineno + 1

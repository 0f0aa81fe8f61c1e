"""Resource hooks and error hooks: when they run, what they get, and what their failures do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi import (
    ErrorHook,
    ErrorHookArgs,
    Output,
    ResourceHook,
    ResourceHookArgs,
    ResourceHookBinding,
    ResourceHookOptions,
    ResourceOptions,
)
from pulumi.runtime.settings import get_monitor

from local.engine.program.hooks import MAX_TRIES
from tests.local.engine.killable_stack import Killed

pytestmark = pytest.mark.engine

MOMENTS = ("before_create", "after_create", "before_update", "after_update", "before_delete", "after_delete")


class Log:
    """The hooks' arguments in order, with the calls to the cloud."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls
        self.reported: dict[str, ResourceHookArgs] = {}

    def hook(self, moment: str, error: str = "", **options: bool) -> ResourceHook:
        """A hook of that name; it fails with `error`."""

        def note(args: ResourceHookArgs) -> None:
            self.calls.append(f"{moment} {args.name}")
            self.reported[moment] = args
            if error:
                raise RuntimeError(error)

        return ResourceHook(moment, note, ResourceHookOptions(**options))

    def all(self) -> ResourceHookBinding:
        """A hook for each moment."""
        return ResourceHookBinding(**{moment: [self.hook(moment)] for moment in MOMENTS})  # type: ignore[arg-type]


def seen(args: ResourceHookArgs) -> dict[str, Any]:
    """The inputs and outputs that are set."""
    sides = ("new_inputs", "old_inputs", "new_outputs", "old_outputs")
    return {side: dict(values) for side in sides if (values := getattr(args, side))}


def steps(stack: Any) -> list[str]:
    """Hooks and side effects in order."""
    return [c for c in stack.cloud.calls if c.split()[0] in (*MOMENTS, "create", "update", "delete")]


# What runs when.


def test_hooks_run_around_the_step_that_they_are_bound_to(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def program(**properties: Any) -> Callable[[], object]:
        return lambda: kit.Thing("machine", ResourceOptions(hooks=log.all()), **properties)

    assert stack.up(program(size=1)).ok
    assert stack.up(program(size=1)).ok
    assert steps(stack) == ["before_create machine", "create machine", "after_create machine"]
    stack.cloud.calls.clear()

    assert stack.up(program(size=2)).ok
    assert steps(stack) == ["before_update machine", "update machine", "after_update machine"]
    stack.cloud.calls.clear()

    assert stack.up(program(size=2, kind="b")).ok
    assert steps(stack) == [
        *("before_create machine", "create machine", "after_create machine"),
        *("before_delete machine", "delete machine", "after_delete machine"),
    ]


def test_a_resource_removed_from_the_program_is_deleted_with_its_hooks(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)
    assert stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=log.all()))).ok
    stack.cloud.calls.clear()

    assert stack.up(lambda: log.all()).ok

    assert steps(stack) == ["before_delete machine", "delete machine", "after_delete machine"]
    assert stack.cloud.objects == {}


def test_several_hooks_run_one_after_the_other_and_one_may_serve_several(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def program() -> None:
        one, two = log.hook("one"), log.hook("two")
        binding = ResourceHookBinding(before_create=[one, two], after_create=[one])
        kit.Thing("machine", ResourceOptions(hooks=binding))

    assert stack.up(program).ok
    assert [c for c in stack.cloud.calls if c != "check machine"] == [
        *("one machine", "two machine", "create machine", "one machine"),
    ]


def test_a_components_hooks_run_before_and_after_its_children(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    class Site(kit.Group):  # type: ignore[misc]
        def __init__(self, size: int) -> None:
            super().__init__("site", ResourceOptions(hooks=log.all()), size=size)
            machine = kit.Thing("machine", ResourceOptions(parent=self), size=size)
            self.register_outputs({"address": machine.address})

    assert stack.up(lambda: Site(1)).ok
    assert steps(stack) == ["before_create site", "create machine", "after_create site"]
    assert seen(log.reported["after_create"]) == {
        "new_inputs": {"size": 1},
        "new_outputs": {"address": "address of machine-a"},
    }
    stack.cloud.calls.clear()

    assert stack.up(lambda: Site(2)).ok
    assert steps(stack) == ["before_update site", "update machine", "after_update site"]
    stack.cloud.calls.clear()

    assert stack.up(lambda: log.all()).ok
    assert steps(stack) == ["delete machine", "before_delete site", "after_delete site"]


def test_a_provider_instances_hooks_run(stack: Any) -> None:
    log = Log(stack.cloud.calls)

    class Cloud(pulumi.ProviderResource):
        def __init__(self, region: str) -> None:
            super().__init__("memory", "elsewhere", {"region": region}, ResourceOptions(hooks=log.all()))

    assert stack.up(lambda: Cloud("one")).ok
    assert stack.up(lambda: Cloud("two")).ok
    expected = ["before_create", "after_create", "before_update", "after_update"]
    assert steps(stack) == [f"{moment} elsewhere" for moment in expected]


def test_a_retained_resource_is_forgotten_with_its_delete_hooks(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)
    options = ResourceOptions(retain_on_delete=True)
    assert stack.up(lambda: kit.Thing("machine", ResourceOptions.merge(options, ResourceOptions(hooks=log.all())))).ok
    stack.cloud.calls.clear()
    assert stack.up(lambda: log.all()).ok
    assert steps(stack) == ["before_delete machine", "after_delete machine"]


def test_a_preview_runs_only_hooks_with_on_dry_run(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def program() -> None:
        network = kit.Thing("network")
        binding = ResourceHookBinding(
            before_create=[log.hook("quiet"), log.hook("loud", on_dry_run=True)],
            after_create=[log.hook("after", on_dry_run=True)],
        )
        kit.Thing("machine", ResourceOptions(hooks=binding), net=network.address)

    assert stack.preview(program).ok
    assert set(log.reported) == {"loud", "after"}
    assert isinstance((log.reported["loud"].new_inputs or {})["net"], pulumi.output.Unknown)
    assert log.reported["after"].id == ""


def test_a_hook_may_wait(stack: Any, kit: Any) -> None:
    def program() -> None:
        async def wait(_args: ResourceHookArgs) -> None:
            await asyncio.sleep(0)
            stack.cloud.calls.append("waited for")

        hook = ResourceHook("waiting", wait)
        kit.Thing("machine", ResourceOptions(hooks=ResourceHookBinding(before_create=[hook])))

    assert stack.up(program).ok
    assert stack.cloud.calls.index("waited for") < stack.cloud.calls.index("create machine")


def test_a_transform_may_bind_hooks(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def program() -> None:
        def bind(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult:
            args.opts.hooks = hooks
            return pulumi.ResourceTransformResult(args.props, args.opts)

        hooks = log.all()
        kit.Thing("machine", ResourceOptions(transforms=[bind]))

    assert stack.up(program).ok
    assert steps(stack) == ["before_create machine", "create machine", "after_create machine"]


# What they get, and what the state keeps.


def test_a_hook_gets_the_existing_old_and_new_inputs_and_outputs(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)
    one, two = {"size": 1}, {"size": 2}
    made = {"address": "address of machine-a"}
    stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=log.all()), **one))
    stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=log.all()), **two))
    stack.up(lambda: log.all())

    assert {moment: seen(args) for moment, args in log.reported.items()} == {
        "before_create": {"new_inputs": one},
        "after_create": {"new_inputs": one, "new_outputs": one | made},
        "before_update": {"old_inputs": one, "old_outputs": one | made, "new_inputs": two},
        "after_update": {
            "old_inputs": one,
            "old_outputs": one | made,
            "new_inputs": two,
            "new_outputs": two | made,
        },
        "before_delete": {"old_inputs": two, "old_outputs": two | made},
        "after_delete": {"old_inputs": two, "old_outputs": two | made},
    }
    reported = {(args.urn, args.name, args.type) for args in log.reported.values()}
    assert reported == {("urn:pulumi:dev::test::memory:index:Thing::machine", "machine", "memory:index:Thing")}
    assert {moment: args.id for moment, args in log.reported.items()} == {
        moment: "" if moment == "before_create" else "machine-a" for moment in MOMENTS
    }


def test_a_secret_reaches_a_hook_as_an_output(stack: Any, kit: Any) -> None:
    tokens: list[Any] = []

    def program() -> None:
        def note(args: ResourceHookArgs) -> None:
            assert args.new_inputs is not None
            tokens.append(args.new_inputs["token"])

        hook = ResourceHook("note", note)
        binding = ResourceHookBinding(before_create=[hook])
        kit.Thing("machine", ResourceOptions(hooks=binding), token=Output.secret("hunter2"))

    assert stack.up(program).ok
    assert [isinstance(token, Output) for token in tokens] == [True]
    assert "hunter2" not in stack.files()


def test_the_state_keeps_hook_names_including_generated_ones(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def program() -> None:
        binding = ResourceHookBinding(before_delete=[log.hook("goodbye")], before_create=[lambda _args: None])
        kit.Thing("machine", ResourceOptions(hooks=binding))

    assert stack.up(program).ok
    exported = stack.open().store.export()["deployment"]["resources"]
    hooks = [r["resourceHooks"] for r in exported if r["urn"].endswith("::machine")]
    assert hooks == [{"BeforeDelete": ["goodbye"], "BeforeCreate": ["memory:index:Thing_machine_before_create_0"]}]


def test_changed_hooks_are_stored_without_an_update(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)
    stack.up(lambda: kit.Thing("machine"))
    outcome = stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=log.all())))
    assert outcome.counts == {"same": 2}
    assert stack.resources()["machine"].resource_hooks["AfterDelete"] == ("after_delete",)


# What a failure does.


def test_a_failing_before_hook_fails_the_step_before_anything_happens(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def program() -> None:
        binding = ResourceHookBinding(before_create=[log.hook("first", "not today"), log.hook("second")])
        kit.Thing("machine", ResourceOptions(hooks=binding))

    outcome = stack.up(program)
    assert not outcome.ok and outcome.errors[0] == 'hook "first" failed: not today'
    assert stack.cloud.objects == {} and "second" not in log.reported
    snapshot = stack.open().store.snapshot
    assert not snapshot.pending and "machine" not in stack.resources()


def test_a_failing_before_delete_hook_keeps_the_resource(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def hooks() -> ResourceHookBinding:
        return ResourceHookBinding(before_delete=[log.hook("first", "not today")])

    stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=hooks())))
    outcome = stack.up(hooks)
    assert not outcome.ok and outcome.errors == ['hook "first" failed: not today']
    assert list(stack.cloud.objects) == ["machine-a"] and "machine" in stack.resources()


def test_a_failing_after_hook_fails_the_run_but_the_step_is_done(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def program() -> None:
        binding = ResourceHookBinding(after_create=[log.hook("last", "too late")])
        machine = kit.Thing("machine", ResourceOptions(hooks=binding))
        kit.Thing("next", net=machine.address)

    outcome = stack.up(program)
    assert not outcome.ok and outcome.errors[0] == 'hook "last" failed: too late'
    assert "create machine" in outcome.done
    assert stack.resources()["machine"].id == "machine-a"
    assert list(stack.cloud.objects) == ["machine-a"], "nothing new is begun"


@pytest.mark.parametrize("moment", ["before_create", "after_create"])
def test_an_ignored_hook_failure_is_a_warning(stack: Any, kit: Any, moment: str) -> None:
    log = Log(stack.cloud.calls)

    def program() -> None:
        hook = log.hook("grumbling", "never mind", ignore_errors=True)
        kit.Thing("machine", ResourceOptions(hooks=ResourceHookBinding(**{moment: [hook]})))  # type: ignore[arg-type]

    outcome = stack.up(program)
    assert outcome.ok and outcome.warnings == ['hook "grumbling" failed: never mind']
    assert list(stack.cloud.objects) == ["machine-a"]


def test_a_resource_whose_delete_hook_is_missing_is_not_deleted(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)
    stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=log.all())))
    outcome = stack.up(lambda: None)
    assert not outcome.ok
    assert outcome.errors == ['hook "before_delete" was not registered by the program']
    assert list(stack.cloud.objects) == ["machine-a"]


def test_a_preview_reports_a_missing_hook(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)
    stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=log.all())))
    assert not stack.preview(lambda: None).ok


def test_two_hooks_of_one_name_are_refused(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def program() -> None:
        binding = ResourceHookBinding(before_create=[log.hook("same"), log.hook("same")])
        kit.Thing("machine", ResourceOptions(hooks=binding))

    outcome = stack.up(program)
    assert not outcome.ok and 'duplicate hook name "same"' in outcome.errors[0]


def test_a_hook_may_be_registered_during_the_deletion_of_its_resource(stack: Any, kit: Any) -> None:
    """A dependent is deleted as soon as its dependency is replaced: possibly before the program has reached it."""
    log = Log(stack.cloud.calls)

    def program(kind: str) -> Callable[[], object]:
        def run() -> None:
            network = kit.Thing("network", ResourceOptions(delete_before_replace=True), kind=kind)

            def machine(_id: str) -> None:
                hooks = ResourceHookBinding(before_delete=[log.hook("goodbye")])
                kit.Thing("machine", ResourceOptions(hooks=hooks), kind=network.address)

            # In the first run the hook is registered once the network exists, in the second one beside it.
            Output.from_input(network.id if kind == "a" else "").apply(machine)

        return run

    assert stack.up(program("a")).ok
    stack.cloud.calls.clear()
    outcome = stack.up(program("b"))
    assert outcome.errors == []
    assert steps(stack) == ["delete machine", "delete network", "create network", "create machine"]
    assert "goodbye machine" in stack.cloud.calls


# Destroy.


def test_a_destroy_without_the_program_refuses_what_has_delete_hooks_and_deletes_nothing(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def program() -> None:
        kit.Thing("machine", ResourceOptions(hooks=log.all()))
        kit.Thing("plain")

    stack.up(program)
    outcome = stack.destroy()
    assert not outcome.ok and len(stack.cloud.objects) == 2
    assert outcome.errors == ["its delete hooks (before_delete, after_delete) need the program: add --run-program"]


def test_a_destroy_with_the_program_creates_nothing_and_runs_the_delete_hooks(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)
    sizes: list[Any] = []

    def program(*, more: bool) -> Callable[[], object]:
        def run() -> None:
            network = kit.Thing("network", size=3)
            network.size.apply(sizes.append)
            kit.Thing("machine", ResourceOptions(hooks=log.all()), net=network.address, size=2 if more else 1)
            if more:
                pulumi.export("address", kit.Thing("new").address)

        return run

    stack.up(program(more=False))
    stack.cloud.calls.clear()
    outcome = stack.destroy(program(more=True))

    assert outcome.ok and outcome.counts == {"delete": 3}
    assert steps(stack) == ["before_delete machine", "delete machine", "after_delete machine", "delete network"]
    assert sizes == [3, 3] and stack.resources() == {}
    assert seen(log.reported["after_delete"])["old_inputs"]["size"] == 1


def test_a_destroy_with_the_program_takes_the_providers_settings_from_it(stack: Any, kit: Any) -> None:
    class Cloud(pulumi.ProviderResource):
        def __init__(self, token: str) -> None:
            super().__init__("memory", "elsewhere", {"token": token})

    def program(token: str) -> Callable[[], object]:
        return lambda: kit.Thing("machine", ResourceOptions(provider=Cloud(token)))

    stack.up(program("one"))
    stack.cloud.configs.clear()
    assert stack.destroy(program("two")).ok
    assert [config["token"] for config in stack.cloud.configs] == ["two"] and stack.cloud.objects == {}


def test_a_destroy_with_the_program_may_be_previewed(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def program() -> object:
        return kit.Thing("machine", ResourceOptions(hooks=log.all()))

    stack.up(program)
    stack.cloud.calls.clear()
    outcome = stack.destroy(program, preview_only=True)
    assert outcome.ok and outcome.counts == {"delete": 2}
    assert steps(stack) == [] and list(stack.cloud.objects) == ["machine-a"]


def test_a_program_that_fails_destroys_nothing(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("machine"))

    def broken() -> None:
        raise ValueError("what now?")

    outcome = stack.destroy(broken)
    assert not outcome.ok and "what now?" in outcome.errors[0]
    assert list(stack.cloud.objects) == ["machine-a"]


# Interrupted.


def test_an_interruption_while_a_hook_runs_lets_its_step_finish_and_begins_nothing_new(stack: Any, kit: Any) -> None:
    def program() -> None:
        monitor: Any = get_monitor()
        interrupting = ResourceHook("interrupting", lambda _args: monitor.interrupt())
        machine = kit.Thing("machine", ResourceOptions(hooks=ResourceHookBinding(before_create=[interrupting])))
        kit.Thing("next", net=machine.address)

    outcome = stack.up(program)
    assert not outcome.ok and outcome.errors[0].startswith("interrupted")
    assert list(stack.cloud.objects) == ["machine-a"]
    assert stack.resources()["machine"].id == "machine-a"
    assert not stack.open().store.snapshot.pending


def test_an_interrupted_deletion_leaves_what_was_not_begun(stack: Any, kit: Any) -> None:
    def hooks() -> ResourceHookBinding:
        monitor: Any = get_monitor()
        return ResourceHookBinding(before_delete=[ResourceHook("stop", lambda _args: monitor.interrupt())])

    def program() -> None:
        network = kit.Thing("network")
        kit.Thing("machine", ResourceOptions(hooks=hooks()), net=network.address)

    stack.up(program)
    assert not stack.up(hooks).ok
    assert list(stack.cloud.objects) == ["network-a"]


def test_a_killed_create_is_resumed_with_its_hooks(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)

    def program() -> object:
        return kit.Thing("machine", ResourceOptions(hooks=log.all()))

    stack.cloud.after["create machine"] = Killed()
    with pytest.raises(Killed):
        stack.up(program)
    stack.cloud.calls.clear()

    assert stack.up(program).ok
    assert steps(stack) == ["before_create machine", "create machine", "after_create machine"]


def test_a_killed_delete_is_finished_without_hooks_and_with_a_warning(stack: Any, kit: Any) -> None:
    log = Log(stack.cloud.calls)
    stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=log.all())))
    stack.cloud.after["delete machine"] = Killed()
    with pytest.raises(Killed):
        stack.up(lambda: log.all())
    stack.cloud.calls.clear()

    outcome = stack.up(lambda: log.all())
    assert outcome.ok and steps(stack) == ["delete machine"]
    assert "deleting it without its hooks (before_delete, after_delete): no program runs yet" in outcome.warnings


# Error hooks.


class Flaky:
    """An error hook that requests a number of retries, and then repairs the cloud."""

    def __init__(self, stack: Any, fault: str, retries: int = 1) -> None:
        self.stack, self.fault, self.retries = stack, fault, retries
        self.reported: list[ErrorHookArgs] = []

    def hooks(self) -> ResourceHookBinding:
        return ResourceHookBinding(on_error=[ErrorHook("flaky", self._retry)])

    def _retry(self, args: ErrorHookArgs) -> bool:
        self.reported.append(args)
        if len(self.reported) == self.retries:
            self.stack.cloud.faults.pop(self.fault)
        return len(self.reported) <= self.retries


def test_a_failed_create_is_retried_as_long_as_an_error_hook_requests(stack: Any, kit: Any) -> None:
    flaky = Flaky(stack, "create machine", retries=2)
    stack.cloud.faults["create machine"] = kit.ProviderError("no room")

    assert stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=flaky.hooks()), size=1)).ok

    assert stack.cloud.asked("create") == ["create machine"] * 3
    assert [args.errors for args in flaky.reported] == [["no room"], ["no room", "no room"]]
    assert {(args.failed_operation, args.name) for args in flaky.reported} == {("create", "machine")}
    assert flaky.reported[0].new_inputs == {"size": 1} and flaky.reported[0].old_inputs is None


@pytest.mark.parametrize("operation", ["update", "delete"])
def test_a_failed_update_or_delete_is_retried_on_request(stack: Any, kit: Any, operation: str) -> None:
    flaky = Flaky(stack, f"{operation} machine")

    def program(size: int) -> Callable[[], object]:
        return lambda: kit.Thing("machine", ResourceOptions(hooks=flaky.hooks()), size=size)

    stack.up(program(1))
    stack.cloud.faults[f"{operation} machine"] = kit.ProviderError("no room")

    assert stack.up(program(2) if operation == "update" else flaky.hooks).ok

    assert stack.cloud.asked(operation) == [f"{operation} machine"] * 2
    assert flaky.reported[0].failed_operation == operation and flaky.reported[0].old_inputs == {"size": 1}


@pytest.mark.parametrize("operation", ["create", "update", "delete"])
def test_an_error_hook_gets_no_secret_that_an_error_quotes(stack: Any, kit: Any, operation: str) -> None:
    flaky = Flaky(stack, f"{operation} machine")

    def program() -> None:
        token = pulumi.Output.secret("hunter2")
        kit.Thing("machine", ResourceOptions(hooks=flaky.hooks()), token=token, size=len(stack.cloud.objects))

    if operation != "create":
        stack.up(program)
    stack.cloud.faults[f"{operation} machine"] = kit.ProviderError("token hunter2 is not valid")

    assert stack.up(flaky.hooks if operation == "delete" else program).ok
    assert flaky.reported[0].errors == ["token [secret] is not valid"]


def test_a_failure_stays_without_a_request_to_retry(stack: Any, kit: Any) -> None:
    flaky = Flaky(stack, "create machine", retries=0)
    stack.cloud.faults["create machine"] = kit.ProviderError("no room")
    outcome = stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=flaky.hooks())))
    assert not outcome.ok and outcome.errors[0] == "no room"
    assert len(flaky.reported) == 1


def test_all_error_hooks_run_and_a_failing_one_is_a_warning(stack: Any, kit: Any) -> None:
    flaky = Flaky(stack, "create machine")
    asked = []

    def broken(_args: ErrorHookArgs) -> bool:
        raise ValueError("what now?")

    def no(args: ErrorHookArgs) -> bool:
        asked.append(args.name)
        return False

    def program() -> None:
        hooks = flaky.hooks()
        assert hooks.on_error is not None
        hooks.on_error += [ErrorHook("broken", broken), ErrorHook("no", no)]
        kit.Thing("machine", ResourceOptions(hooks=hooks))

    stack.cloud.faults["create machine"] = kit.ProviderError("no room")
    outcome = stack.up(program)
    assert outcome.ok and asked == ["machine"]
    assert outcome.warnings == ['error hook "broken" failed: what now?']


def test_retries_by_error_hooks_are_limited(stack: Any, kit: Any) -> None:
    flaky = Flaky(stack, "create machine", retries=MAX_TRIES + 1)
    stack.cloud.faults["create machine"] = kit.ProviderError("no room")
    outcome = stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=flaky.hooks())))
    assert not outcome.ok and outcome.errors[0] == "no room"
    assert len(stack.cloud.asked("create")) == MAX_TRIES
    assert outcome.warnings == ["error hooks asked for more than 100 tries, which is the limit"]


def test_a_retry_does_not_recreate_an_object_that_is_not_ready(stack: Any, kit: Any) -> None:
    flaky = Flaky(stack, "create machine")
    stack.cloud.faults["create machine"] = kit.PartialFailure("still booting", "machine-x", {"size": 1})

    assert stack.up(lambda: kit.Thing("machine", ResourceOptions(hooks=flaky.hooks()), size=1)).ok

    assert stack.cloud.asked("create", "update") == ["create machine", "update machine"]
    machine = stack.resources()["machine"]
    assert machine.id == "machine-x" and machine.init_errors == ()


def test_an_interrupted_run_calls_no_error_hook(stack: Any, kit: Any) -> None:
    flaky = Flaky(stack, "create machine")

    def program() -> None:
        monitor: Any = get_monitor()
        hooks = flaky.hooks()
        hooks.before_create = [ResourceHook("interrupting", lambda _args: monitor.interrupt())]
        kit.Thing("machine", ResourceOptions(hooks=hooks))

    stack.cloud.faults["create machine"] = kit.ProviderError("no room")
    assert not stack.up(program).ok
    assert flaky.reported == []

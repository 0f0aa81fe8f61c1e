"""Programs through the engine in process, against a cloud in memory: created, changed, replaced, deleted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi import ResourceOptions

from local.engine.events import Status, StepFailed
from local.plugins.values import Secret

pytestmark = pytest.mark.engine


def test_declared_resources_are_created_once_and_the_next_up_changes_nothing(stack: Any, kit: Any) -> None:
    def program() -> None:
        network = kit.Thing("network")
        kit.Thing("machine", size=2, net=network.address)
        pulumi.export("address", network.address)

    assert stack.up(program).counts == {"create": 3}
    assert stack.cloud.objects["machine-a"] == {"size": 2, "net": "address of network-a"}
    assert stack.resources()["test-dev"].outputs == {"address": "address of network-a"}

    stack.cloud.calls.clear()
    assert stack.up(program).counts == {"same": 3}
    assert stack.cloud.asked("create", "update", "delete") == []


def test_a_preview_changes_nothing_and_shows_unknown_values(stack: Any, kit: Any) -> None:
    def program() -> None:
        network = kit.Thing("network")
        kit.Thing("machine", net=network.address)
        pulumi.export("address", network.address)

    outcome = stack.preview(program)

    assert outcome.ok and outcome.counts == {"create": 3}
    assert outcome.summary.new_outputs == {"address": kit.UNKNOWN}
    assert stack.cloud.asked("create", "update", "delete", "read") == []
    assert not (stack.directory / "state").exists()


def test_urns_include_the_parents_types_and_children_follow_their_parents_in_the_state(stack: Any, kit: Any) -> None:
    def program() -> None:
        group = kit.Group("all")
        kit.Thing("one", opts=ResourceOptions(parent=kit.Group("inner", ResourceOptions(parent=group))))

    stack.up(program)
    urns = [r.urn for r in stack.open().store.snapshot.ordered()]

    assert "urn:pulumi:dev::test::test:index:Group$test:index:Group$memory:index:Thing::one" in urns
    assert urns.index("urn:pulumi:dev::test::test:index:Group::all") < len(urns) - 1


def test_a_changed_property_is_updated_in_place_and_a_forcing_one_replaces_create_first(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("machine", size=1, kind="a"))

    stack.cloud.calls.clear()
    assert stack.up(lambda: kit.Thing("machine", size=2, kind="a")).counts == {"update": 1, "same": 1}
    assert stack.cloud.asked("create", "update", "delete") == ["update machine"]

    stack.cloud.calls.clear()
    assert stack.up(lambda: kit.Thing("machine", size=2, kind="b")).counts == {"replace": 1, "same": 1}
    assert stack.cloud.asked("create", "update", "delete") == ["create machine", "delete machine"]
    assert list(stack.cloud.objects) == ["machine-b"]


def test_delete_before_replace_deletes_dependents_that_must_be_replaced_first(stack: Any, kit: Any) -> None:
    def program(kind: str) -> Any:
        def run() -> None:
            first = kit.Thing("first", kind=kind, opts=ResourceOptions(delete_before_replace=True))
            kit.Thing("second", kind=first.address)
            kit.Thing("third", size=first.address)

        return run

    stack.up(program("a"))
    stack.cloud.calls.clear()

    outcome = stack.up(program("b"))

    assert outcome.ok and outcome.counts == {"replace": 2, "update": 1, "same": 1}
    changes = stack.cloud.asked("create", "update", "delete")
    assert changes[:3] == ["delete second", "delete first", "create first"]
    assert sorted(changes[3:]) == ["create second", "update third"]


def test_replace_on_changes_replaces_what_the_provider_would_update(stack: Any, kit: Any) -> None:
    opts = ResourceOptions(replace_on_changes=["size"], delete_before_replace=True)
    stack.up(lambda: kit.Thing("lb", opts, size=1))
    stack.cloud.calls.clear()

    assert stack.preview(lambda: kit.Thing("lb", opts, size=2)).counts == {"replace": 1, "same": 1}
    assert stack.up(lambda: kit.Thing("lb", opts, size=2)).counts == {"replace": 1, "same": 1}
    assert stack.cloud.asked("create", "update", "delete") == ["delete lb", "create lb"]


def test_undeclared_resources_are_deleted_after_their_dependents(stack: Any, kit: Any) -> None:
    def program() -> None:
        a = kit.Thing("a")
        b = kit.Thing("b", net=a.address)
        kit.Thing("c", opts=ResourceOptions(depends_on=[b]))

    stack.up(program)
    stack.cloud.calls.clear()

    assert stack.up(lambda: None).counts == {"delete": 3, "same": 1}
    assert stack.cloud.asked("delete") == ["delete c", "delete b", "delete a"]


def test_destroy_deletes_everything_in_reverse_order_and_leaves_an_empty_state(stack: Any, kit: Any) -> None:
    def program() -> None:
        group = kit.Group("group")
        a = kit.Thing("a", opts=ResourceOptions(parent=group))
        kit.Thing("b", net=a.address)

    stack.up(program)
    outcome = stack.destroy()

    assert outcome.ok and outcome.counts == {"delete": 4}
    assert stack.cloud.asked("delete") == ["delete b", "delete a"]
    assert stack.cloud.objects == {} and stack.open().store.snapshot.resources == {}


def test_independent_resources_are_made_at_the_same_time(stack: Any, kit: Any) -> None:
    stack.cloud.barrier = threading.Barrier(3)  # Each create waits until three run.

    assert stack.up(lambda: [kit.Thing(name) for name in "abc"]).ok


def test_protected_resources_are_neither_deleted_nor_replaced(stack: Any, kit: Any) -> None:
    def program() -> None:
        group = kit.Group("group", ResourceOptions(protect=True))
        kit.Thing("kept", opts=ResourceOptions(parent=group), kind="a")
        kit.Thing("loose", opts=ResourceOptions(parent=group, protect=False))

    stack.up(program)
    assert stack.resources()["kept"].protect and not stack.resources()["loose"].protect

    for outcome in (stack.up(lambda: None), stack.destroy()):
        assert not outcome.ok and "kept" in outcome.errors[0] and "protect" in outcome.errors[0]
    group = ResourceOptions(protect=True)
    replaced = stack.up(lambda: kit.Thing("kept", ResourceOptions(parent=kit.Group("group", group)), kind="b"))
    assert not replaced.ok and "protected" in replaced.errors[0]
    assert stack.cloud.asked("delete") == []


def test_a_preview_shows_what_would_replace_a_protected_resource_and_goes_on(stack: Any, kit: Any) -> None:
    def program(kind: str) -> Callable[[], None]:
        def run() -> None:
            kept = kit.Thing("kept", ResourceOptions(protect=True), kind=kind)
            kit.Thing("user", net=kept.address)

        return run

    stack.up(program("a"))

    outcome = stack.preview(program("b"))

    assert not outcome.ok and len(outcome.errors) == 1 and "(because of kind) but is protected" in outcome.errors[0]
    assert outcome.counts == {"same": 1, "replace": 1, "update": 1}


def test_deleted_with_skips_the_delete_call_only_if_the_other_is_deleted_too(stack: Any, kit: Any) -> None:
    def program() -> None:
        cluster = kit.Thing("cluster")
        kit.Thing("inside", opts=ResourceOptions(deleted_with=cluster))

    stack.up(program)
    stack.destroy()
    assert stack.cloud.asked("delete") == ["delete cluster"]

    stack.cloud.calls.clear()
    stack.up(program)
    stack.up(lambda: kit.Thing("cluster"))
    assert stack.cloud.asked("delete") == ["delete inside"]


def test_retain_on_delete_forgets_without_deleting(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("address", opts=ResourceOptions(retain_on_delete=True)))

    assert stack.destroy().ok
    assert stack.cloud.asked("delete") == [] and stack.open().store.snapshot.resources == {}


def test_ignored_changes_keep_the_old_value(stack: Any, kit: Any) -> None:
    opts = ResourceOptions(ignore_changes=["size"])
    stack.up(lambda: kit.Thing("pool", opts, size=3, tag="x"))

    assert stack.up(lambda: kit.Thing("pool", opts, size=9, tag="x")).counts == {"same": 2}
    assert stack.up(lambda: kit.Thing("pool", opts, size=9, tag="y")).counts == {"same": 1, "update": 1}
    assert stack.cloud.objects["pool-a"] == {"size": 3, "tag": "y"}


def test_secrets_stay_secret_in_outputs_state_and_journal(stack: Any, kit: Any) -> None:
    def program() -> None:
        opts = ResourceOptions(additional_secret_outputs=["address"])
        thing = kit.Thing(
            "thing", opts, token=pulumi.Output.secret("hunter2"), nested={"deep": pulumi.Output.secret("hunter3")}
        )
        pulumi.export("address", thing.address)

    stack.cloud.after["create thing"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        stack.up(program)
    assert "hunter" not in stack.files()

    outcome = stack.up(program)
    assert outcome.ok
    assert stack.cloud.objects["thing-a"]["token"] == "hunter2", "the provider gets it plain"
    outputs = stack.resources()["thing"].outputs
    assert outputs["token"] == Secret("hunter2") and isinstance(outputs["address"], Secret)
    assert isinstance(stack.resources()["test-dev"].outputs["address"], Secret)
    assert "hunter" not in stack.files() and "address of" not in stack.files()
    assert "hunter" not in repr(outcome.events)


def test_what_becomes_secret_without_another_change_becomes_secret_in_the_outputs(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("thing", token="hunter2"))
    opts = ResourceOptions(additional_secret_outputs=["address"])

    assert stack.up(lambda: kit.Thing("thing", opts, token=pulumi.Output.secret("hunter2"))).counts == {"same": 2}
    outputs = stack.resources()["thing"].outputs
    assert outputs["token"] == Secret("hunter2") and isinstance(outputs["address"], Secret)


@pytest.mark.parametrize("found", [["hunter2", "b", "more"], ["b", "hunter2"], {"a": "hunter2"}, "hunter2,b"])
def test_a_secret_stays_secret_wherever_a_refresh_finds_it_in_its_property(stack: Any, kit: Any, found: Any) -> None:
    stack.up(lambda: kit.Thing("thing", tokens=[pulumi.Output.secret("hunter2"), "b"]))
    stack.cloud.objects["thing-a"]["tokens"] = found

    assert stack.refresh().ok
    assert "hunter2" not in stack.files()


def test_what_is_secret_in_outputs_only_stays_plain_in_the_inputs_after_a_refresh(stack: Any, kit: Any) -> None:
    def program() -> None:
        kit.Thing("thing", ResourceOptions(additional_secret_outputs=["token"]), token="open", size=1)

    stack.up(program)
    stack.refresh()
    before = stack.resources()["thing"]
    assert before.inputs == {"token": "open", "size": 1} and before.outputs["token"] == Secret("open")
    stack.cloud.objects["thing-a"]["size"] = 2
    assert stack.refresh().counts["update"] == 1
    assert stack.resources()["thing"].inputs == {"token": "open", "size": 2}


@pytest.mark.parametrize("verb", ["check", "create", "update", "delete"])
def test_an_error_of_a_provider_does_not_show_the_resources_secrets(stack: Any, kit: Any, verb: str) -> None:
    def program(size: int) -> Any:
        return lambda: kit.Thing("thing", size=size, token=pulumi.Output.secret("hunter2"))

    if verb in ("update", "delete"):
        stack.up(program(1))
    stack.cloud.faults[f"{verb} thing"] = kit.ProviderError("token hunter2 is not valid")

    outcome = stack.destroy() if verb == "delete" else stack.up(program(2))

    assert outcome.errors == ["token [secret] is not valid"]


def test_why_an_object_is_not_ready_is_kept_without_its_secrets(stack: Any, kit: Any) -> None:
    stack.cloud.after["create thing"] = kit.PartialFailure("token hunter2 is not valid", "thing-a", {})

    assert not stack.up(lambda: kit.Thing("thing", token=pulumi.Output.secret("hunter2"))).ok
    assert stack.resources()["thing"].init_errors == ("token [secret] is not valid",)


def test_a_failed_check_names_resource_and_property_and_nothing_is_made(stack: Any, kit: Any) -> None:
    outcome = stack.up(lambda: kit.Thing("bad", size=-1))

    assert not outcome.ok and outcome.errors == ["size: must be positive"]
    assert stack.cloud.asked("create") == []


def test_after_a_failure_nothing_new_starts_and_the_next_up_continues(stack: Any, kit: Any) -> None:
    def program() -> None:
        a = kit.Thing("a")
        b = kit.Thing("b", net=a.address)
        kit.Thing("c", net=b.address)

    stack.cloud.faults["create b"] = kit.ProviderError("quota exceeded")
    outcome = stack.up(program)
    assert not outcome.ok and outcome.errors == ["quota exceeded"]
    assert stack.cloud.asked("create") == ["create a", "create b"]

    stack.cloud.faults.clear()
    assert stack.up(program).counts == {"same": 2, "create": 2}


def test_an_object_that_is_not_ready_is_kept_and_the_next_up_updates_it(stack: Any, kit: Any) -> None:
    stack.cloud.faults["create slow"] = kit.PartialFailure("no replica is ready", "slow-a", {"size": 1})
    outcome = stack.up(lambda: kit.Thing("slow", size=1))
    assert not outcome.ok and "no replica is ready" in outcome.errors[0]
    assert [e.status for e in outcome.events if isinstance(e, StepFailed)] == [Status.PARTIAL]
    assert stack.resources()["slow"].id == "slow-a" and stack.resources()["slow"].init_errors

    stack.cloud.faults.clear()
    assert stack.up(lambda: kit.Thing("slow", size=1)).counts == {"same": 1, "update": 1}
    assert not stack.resources()["slow"].init_errors


def test_refresh_stores_changes_and_forgets_missing_objects(stack: Any, kit: Any) -> None:
    def program() -> None:
        kit.Thing("a", size=1)
        kit.Thing("b", size=1)
        kit.Thing("c", size=1)

    stack.up(program)
    stack.cloud.objects["a-a"] = {"size": 7}
    del stack.cloud.objects["b-a"]

    outcome = stack.refresh()
    assert outcome.ok and outcome.counts == {"update": 1, "delete": 1, "same": 2}
    assert stack.resources()["a"].outputs["size"] == 7 and "b" not in stack.resources()
    assert stack.up(program).counts == {"same": 2, "update": 1, "create": 1}
    assert stack.cloud.objects["a-a"] == {"size": 1}
    assert stack.refresh().counts == {"same": 4}


def test_a_refresh_keeps_only_property_dependencies_with_a_resource(stack: Any, kit: Any) -> None:
    def program() -> None:
        kit.Thing("a", size=1, net=kit.Thing("b").address)

    stack.up(program)
    before = stack.resources()["a"]
    assert set(before.property_dependencies) == {"net", "size"}

    stack.refresh()

    after = stack.resources()["a"]
    assert after.property_dependencies == {"net": before.property_dependencies["net"]}
    assert after.modified == before.modified
    assert set(stack.up(program).counts) == {"same"}


def test_an_unsupported_feature_is_refused_by_name(stack: Any) -> None:
    outcome = stack.up(lambda: pulumi.ComponentResource("memory:index:Far", "thing", {}, remote=True))

    assert not outcome.ok and "remote components" in outcome.errors[0] and "thing" in outcome.errors[0]
    assert stack.cloud.asked("create") == []


def test_an_unknown_package_is_refused_by_name(stack: Any) -> None:
    outcome = stack.up(lambda: pulumi.CustomResource("aws:s3:Bucket", "b"))

    assert not outcome.ok and outcome.errors[0].startswith("the embedded engine has no provider for package aws")


def test_two_resources_of_one_urn_are_an_error(stack: Any, kit: Any) -> None:
    outcome = stack.up(lambda: [kit.Thing("same"), kit.Thing("same")])

    assert not outcome.ok and "this URN" in outcome.errors[0]


def test_a_failing_program_is_reported_with_its_position_and_deletes_nothing(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("a"))

    def broken() -> None:
        raise KeyError("nodePools")

    outcome = stack.up(broken)
    assert not outcome.ok and "KeyError: 'nodePools'" in outcome.errors[0]
    assert stack.cloud.asked("delete") == []


class Cloud(pulumi.ProviderResource):
    """A provider of things."""

    def __init__(self, name: str, **properties: Any) -> None:
        super().__init__("memory", name, properties)


def test_an_explicit_provider_is_configured_by_its_resource_and_unknown_until_it_is_known(stack: Any, kit: Any) -> None:
    def program() -> None:
        network = kit.Thing("network")
        kit.Thing("inside", opts=ResourceOptions(provider=Cloud("cloud", kubeconfig=network.address)))

    assert stack.preview(program).ok
    assert stack.up(program).counts == {"create": 4}
    assert stack.resources()["inside"].provider.startswith("urn:pulumi:dev::test::pulumi:providers:memory::cloud::")
    assert stack.resources()["cloud"].inputs["kubeconfig"] == "address of network-a"
    assert stack.up(program).counts == {"same": 4}
    assert stack.destroy().ok
    assert stack.cloud.asked("delete") == ["delete inside", "delete network"]


def test_a_provider_moved_to_another_place_is_replaced_with_its_resources(stack: Any, kit: Any) -> None:
    """As for a recreated cluster: its objects do not exist, whatever their ids."""

    def program(place: str, token: str) -> Callable[[], None]:
        def run() -> None:
            provider = Cloud("cloud", place=place, token=token)
            kit.Thing("inside", opts=ResourceOptions(provider=provider))

        return run

    assert stack.up(program("old", "a")).counts == {"create": 3}
    assert stack.up(program("old", "b")).counts == {"update": 1, "same": 2}
    assert stack.preview(program("new", "b")).counts == {"replace": 2, "same": 1}

    assert stack.up(program("new", "b")).counts == {"replace": 2, "same": 1}

    assert set(stack.cloud.objects) == {"new/inside-a"}
    assert stack.up(program("new", "b")).counts == {"same": 3}
    assert stack.destroy().ok and stack.cloud.objects == {}


def test_a_resource_can_be_passed_as_a_value(stack: Any, kit: Any) -> None:
    def program() -> None:
        network = kit.Thing("network")
        kit.Thing("machine", net=network)

    assert stack.up(program).ok
    assert stack.up(program).counts == {"same": 3}


def test_a_refresh_forgets_a_resource_deleted_with_a_missing_one_without_reading_it(stack: Any, kit: Any) -> None:
    def program() -> None:
        cluster = kit.Thing("cluster")
        space = kit.Thing("space", opts=ResourceOptions(deleted_with=cluster))
        kit.Thing("pod", opts=ResourceOptions(deleted_with=space))
        kit.Thing("balancer", opts=ResourceOptions(depends_on=[cluster]))

    stack.up(program)
    del stack.cloud.objects["cluster-a"]
    for name in ("space", "pod"):
        stack.cloud.faults[f"read {name}"] = kit.ProviderError("the cluster does not answer")

    assert stack.refresh(preview_only=True).counts == {"same": 2, "delete": 3}
    assert stack.refresh().counts == {"same": 2, "delete": 3}
    assert stack.up(program).counts == {"same": 2, "create": 3}


def test_a_refresh_reads_a_resource_deleted_with_an_unreadable_one(stack: Any, kit: Any) -> None:
    def program() -> None:
        kit.Thing("inside", opts=ResourceOptions(deleted_with=kit.Thing("cluster")))

    stack.up(program)
    stack.cloud.faults["read cluster"] = kit.ProviderError("the cloud is down")

    assert not stack.refresh().ok
    assert "read inside" in stack.cloud.calls and "inside" in stack.resources()


def test_a_refresh_removes_references_to_forgotten_resources(stack: Any, kit: Any) -> None:
    def program() -> None:
        base = kit.Thing("base", size=1)
        kit.Thing("user", size=base.size, opts=ResourceOptions(depends_on=[base], parent=base))

    stack.up(program)
    del stack.cloud.objects["base-a"]
    assert stack.refresh().ok, "and its state is one that the CLI would take"
    assert "base" not in str(stack.resources()["user"].requires())


def exporting(kit: Any, *names: str, raises: bool = False) -> Any:
    def program() -> None:
        kit.Thing("thing")
        for name in names:
            pulumi.export(name, name)
        if raises:
            raise ValueError("broken")

    return program


def outputs_of(stack: Any) -> list[str]:
    return sorted(stack.resources()["test-dev"].outputs)


def test_a_failing_program_removes_no_outputs(stack: Any, kit: Any) -> None:
    stack.up(exporting(kit, "a", "b"))

    failed = exporting(kit, "a", "c", raises=True)
    previewed, applied = stack.preview(failed), stack.up(failed)

    assert not previewed.ok and not applied.ok
    assert sorted(previewed.summary.new_outputs) == sorted(applied.summary.new_outputs) == ["a", "b", "c"]
    assert outputs_of(stack) == ["a", "b", "c"]


def test_a_successful_program_removes_outputs_that_it_no_longer_exports(stack: Any, kit: Any) -> None:
    stack.up(exporting(kit, "a", "b"))

    previewed, applied = stack.preview(exporting(kit, "b")), stack.up(exporting(kit, "b"))

    assert list(previewed.summary.new_outputs) == list(applied.summary.new_outputs) == ["b"]
    assert outputs_of(stack) == ["b"]


@pytest.mark.parametrize("verb", ["preview", "up"])
def test_a_resource_that_fails_leaves_the_outputs_as_they_were(stack: Any, kit: Any, verb: str) -> None:
    stack.up(exporting(kit, "a"))

    def program() -> None:
        pulumi.export("a", kit.Thing("broken", size=-1).address)

    failed = getattr(stack, verb)(program)

    assert not failed.ok and failed.summary.new_outputs == failed.summary.old_outputs == {"a": "a"}
    assert outputs_of(stack) == ["a"]

"""Deleting before replacing: what is deleted with the old one, what must not be, and concurrent registrations."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pulumi
import pytest
from pulumi import Alias, ResourceOptions

from local.engine.policies.host import PolicyHost
from local.engine.policies.resources import AnalyzedResource

pytestmark = pytest.mark.engine

FIRST = ResourceOptions(delete_before_replace=True)
CHANGES = ("create", "update", "delete")
SOON = 60.0


def test_a_child_that_depends_on_its_parents_outputs_is_deleted_before_it(stack: Any, kit: Any) -> None:
    def program(kind: str) -> Any:
        def run() -> None:
            parent = kit.Thing("parent", FIRST, kind=kind)
            kit.Thing("child", ResourceOptions(parent=parent), kind=parent.address)

        return run

    stack.up(program("a"))
    stack.cloud.calls.clear()

    assert stack.up(program("b")).ok
    assert stack.cloud.asked(*CHANGES) == ["delete child", "delete parent", "create parent", "create child"]


def test_a_protected_dependent_prevents_the_whole_replacement(stack: Any, kit: Any) -> None:
    def program(kind: str) -> Any:
        def run() -> None:
            a = kit.Thing("a", FIRST, kind=kind)
            b = kit.Thing("b", ResourceOptions(protect=True), kind=a.address)
            kit.Thing("c", kind=b.address)

        return run

    stack.up(program("a"))
    stack.cloud.calls.clear()

    outcome = stack.up(program("b"))

    assert not outcome.ok and "Thing b must be replaced" in outcome.errors[0] and "protected" in outcome.errors[0]
    assert stack.cloud.asked(*CHANGES) == []


@pytest.mark.parametrize("again", ["created", "imported", "read"])
def test_a_replaced_object_that_the_program_wants_again_is_no_longer_deleted(stack: Any, kit: Any, again: str) -> None:
    def program() -> None:
        if again == "read":
            pulumi.CustomResource("memory:index:Thing", "thing", {}, ResourceOptions(id="thing-a"))
        else:
            kit.Thing("thing", ResourceOptions(import_="thing-a" if again == "imported" else None), kind="a")

    stack.up(lambda: kit.Thing("thing", kind="a"))
    stack.cloud.faults["delete thing"] = kit.ProviderError("in use")
    assert not stack.up(lambda: kit.Thing("thing", kind="b")).ok
    stack.cloud.faults.clear()

    assert stack.up(program).ok
    assert list(stack.cloud.objects) == ["thing-a"]
    assert len(stack.resources()) == 2 and stack.resources()["thing"].id == "thing-a"


def before(kit: Any, **user: Any) -> Any:
    """`user` depends on `base` so that it is replaced with it."""

    def run() -> None:
        base = kit.Thing("base", FIRST, kind="a")
        kit.Thing("user", ResourceOptions(replace_on_changes=["net"]), net=base.address, **user)

    return run


class Meeting:
    """Makes a call to the cloud wait for another one."""

    def __init__(self, stack: Any, monkeypatch: pytest.MonkeyPatch, waits: dict[str, str], seconds: float) -> None:
        self._begun: dict[str, threading.Event] = {}
        note = stack.cloud.note

        def noting(verb: str, urn: str, timeout: float = 0) -> None:
            note(verb, urn, timeout)
            call = f"{verb} {urn.rpartition('::')[2]}"
            self.event(call).set()
            if call in waits:
                self.event(waits[call]).wait(seconds)

        monkeypatch.setattr(stack.cloud, "note", noting)

    def event(self, call: str) -> threading.Event:
        return self._begun.setdefault(call, threading.Event())


@pytest.mark.parametrize("name", ["user", "renamed"])
def test_a_registered_resource_that_lost_its_dependency_is_not_replaced(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    stack.up(before(kit))
    stack.cloud.calls.clear()
    # The base is processed while the other one is being updated, which ends when the base is deleted.
    waits = {"diff base": f"update {name}", f"update {name}": "delete base"}
    Meeting(stack, monkeypatch, waits, SOON)

    def after() -> None:
        kit.Thing("base", FIRST, kind="b")
        kit.Thing(name, ResourceOptions(aliases=[Alias(name="user")]), size=2)

    assert stack.up(after).ok
    assert stack.cloud.asked(*CHANGES) == [f"update {name}", "delete base", "create base"]


@pytest.mark.parametrize("name", ["user", "renamed"])
def test_a_dependent_being_deleted_is_recreated_after_its_deletion(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    stack.up(before(kit))
    stack.cloud.calls.clear()
    deleting, checked = threading.Event(), threading.Event()
    note = stack.cloud.note

    def noting(verb: str, urn: str, timeout: float = 0) -> None:
        note(verb, urn, timeout)
        if (verb, urn.rpartition("::")[2]) == ("delete", "user"):
            deleting.set()
            # Registered meanwhile it must not be touched: only a short wait can show that it waits.
            assert not checked.wait(0.3)
        if verb == "check" and urn.endswith(f"::{name}"):
            checked.set()

    monkeypatch.setattr(stack.cloud, "note", noting)

    def program() -> None:
        kit.Thing("base", FIRST, kind="b")

        async def later() -> None:
            await asyncio.to_thread(deleting.wait, SOON)
            kit.Thing(name, ResourceOptions(aliases=[Alias(name="user")]), size=2)

        pulumi.export("later", pulumi.Output.from_input(later()))

    outcome = stack.up(program)

    assert outcome.ok, outcome.errors
    changes = stack.cloud.asked(*CHANGES)
    assert changes[0] == "delete user" and sorted(changes[1:]) == ["create base", f"create {name}", "delete base"]
    assert set(stack.resources()) == {"test-dev", "base", name}


def test_a_dependent_of_two_replaced_resources_is_deleted_once(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program(kind: str) -> Any:
        def run() -> None:
            one, two = kit.Thing("one", FIRST, kind=kind), kit.Thing("two", FIRST, kind=kind)
            opts = ResourceOptions(replace_on_changes=["net", "disk"])
            kit.Thing("user", opts, net=one.address, disk=two.address)

        return run

    stack.up(program("a"))
    stack.cloud.calls.clear()
    Meeting(stack, monkeypatch, {"diff one": "diff two", "diff two": "diff one", "delete user": "delete user"}, SOON)

    assert stack.up(program("b")).ok

    deletions = stack.cloud.asked("delete")
    assert deletions[0] == "delete user" and sorted(deletions[1:]) == ["delete one", "delete two"]


class Place(pulumi.ProviderResource):
    """A provider of the in-memory cloud that manages one place of it."""

    def __init__(self, name: str, place: pulumi.Input[str]) -> None:
        super().__init__("memory", name, {"place": place})


@pytest.mark.parametrize("output", ["address", "size"], ids=["another place", "the same place again"])
def test_a_provider_moved_to_another_place_is_deleted_with_its_resources(stack: Any, kit: Any, output: str) -> None:
    def program(kind: str) -> Any:
        def run() -> None:
            cluster = kit.Thing("cluster", FIRST, kind=kind, size="big")
            provider = Place("place", getattr(cluster, output))
            kit.Thing("inside", ResourceOptions(provider=provider))

        return run

    stack.up(program("a"))
    stack.cloud.calls.clear()
    foreseen = stack.preview(program("b")).counts

    assert stack.up(program("b")).counts == foreseen == {"replace": 3, "same": 1}
    assert stack.cloud.asked(*CHANGES) == ["delete inside", "delete cluster", "create cluster", "create inside"]
    assert stack.up(program("b")).counts == {"same": 4}
    assert stack.destroy().ok and stack.cloud.objects == {}


def test_a_replaced_resource_keeps_its_dependencies_under_their_new_names(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first() -> None:
        kit.Thing("user", kind="a", net=kit.Thing("base").address)

    def second() -> None:
        kit.Thing("user", kind="b", net="none")

        async def later() -> None:
            await asyncio.to_thread(creating.wait, SOON)
            kit.Thing("renamed", ResourceOptions(aliases=[Alias(name="base")]), size=1)

        pulumi.export("later", pulumi.Output.from_input(later()))

    stack.up(first)
    meeting = Meeting(stack, monkeypatch, {"create user": "update renamed"}, SOON)
    creating = meeting.event("create user")
    stack.cloud.faults["delete user"] = kit.ProviderError("busy")

    assert not stack.up(second).ok
    (old,) = [r for r in stack.open().store.snapshot.all() if r.delete]
    assert [urn.rpartition("::")[2] for urn in old.dependencies] == ["renamed"]


class Pinning:
    """A policy pack that pins every image."""

    name, version = "pinning", "1.0.0"

    def remediate(self, resource: AnalyzedResource) -> tuple[dict[str, Any], list[Any]]:
        image = resource.properties.get("image")
        return {**resource.properties, **({"image": "pinned"} if image else {})}, []

    def analyze(self, resource: AnalyzedResource) -> list[Any]:
        del resource
        return []

    def analyze_stack(self, resources: list[AnalyzedResource]) -> list[Any]:
        del resources
        return []

    def close(self) -> None:
        pass


def test_remediations_apply_to_replacements_too(stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PolicyHost, "start", lambda *_args, **_options: Pinning())
    packs = [(stack.directory, None)]
    stack.up(lambda: kit.Thing("a", kind="a", image="latest"), policy_packs=packs)

    outcome = stack.up(lambda: kit.Thing("a", kind="b", image="latest"), policy_packs=packs)

    assert outcome.counts == {"replace": 1, "same": 1}
    assert stack.cloud.objects == {"a-b": {"kind": "b", "image": "pinned"}}

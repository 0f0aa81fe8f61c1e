"""Random programs: their resources, their edits, and how many are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pulumi
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from pulumi import Alias, ResourceOptions

NODES = 5
HIDDEN = "hunter2-"
"""The prefix of every secret in the programs."""


def tried(share: float) -> settings:
    """Settings for a share of the profile's examples, each of which is several runs of a program."""
    examples = settings().max_examples
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    # Finding a smaller example takes minutes: only with the thorough profile.
    phases = [phase for phase in Phase if phase is not Phase.shrink or examples > 1000]
    return settings(max_examples=int(examples * share), suppress_health_check=checks, phases=phases)


@dataclass(frozen=True)
class Node:
    """One resource of a program; it has the same number in every edit."""

    there: bool
    size: int
    """Changes in place."""
    kind: str
    """A change replaces."""
    needs: frozenset[int]
    """The nodes whose address is an input."""
    after: frozenset[int]
    """Those in `depends_on`."""
    token: int | None
    """The number of a secret input."""
    renamed: bool
    inside: int | None
    """The component around it. Its names and parents in other edits are its aliases."""
    provider: int | None
    delete_first: bool
    retained: bool
    deleted_with: int | None
    ignores: bool
    """Changes of the size are ignored."""
    replaced_on: bool
    """Changes of the size replace."""


@dataclass(frozen=True)
class Program:
    """One edit: `moved` providers manage another place than at first; `protected` are the numbers of nodes."""

    nodes: tuple[Node, ...]
    moved: frozenset[int] = frozenset()
    protected: frozenset[int] = frozenset()

    def present(self, numbers: frozenset[int], before: int) -> list[int]:
        return [n for n in sorted(numbers) if n < before and self.nodes[n].there]


some = st.frozensets(st.integers(0, NODES - 1), max_size=2)
rarely = st.integers(0, 4).map(lambda n: n == 0)
node_strategy = st.builds(
    Node,
    there=st.integers(0, 3).map(bool),
    size=st.integers(1, 2),
    kind=st.sampled_from("xxy"),
    needs=some,
    after=some,
    token=st.none() | st.integers(1, 2),
    renamed=st.booleans(),
    inside=st.none() | st.integers(0, 1),
    provider=st.none() | st.integers(0, 1),
    delete_first=st.booleans(),
    retained=rarely,
    deleted_with=st.none() | st.none() | st.integers(0, NODES - 1),
    ignores=rarely,
    replaced_on=rarely,
)
programs = st.builds(
    Program,
    nodes=st.lists(node_strategy, min_size=NODES, max_size=NODES).map(tuple),
    moved=st.just(frozenset()) | st.frozensets(st.integers(0, 1)),
)


class Thing(pulumi.CustomResource):
    """`address` and `name` are outputs; `name` is random."""

    address: pulumi.Output[str]

    def __init__(self, name: str, opts: ResourceOptions, **properties: Any) -> None:
        super().__init__("random:index:Thing", name, {"address": None, "name": None, **properties}, opts)


class Group(pulumi.ComponentResource):
    """A component."""

    def __init__(self, name: str) -> None:
        super().__init__("random:index:Group", name, {})


class Place(pulumi.ProviderResource):
    """A provider instance with a place of its own."""

    def __init__(self, name: str, place: str) -> None:
        super().__init__("random", name, {"place": place})


def names_of(number: int) -> tuple[str, str]:
    """A node's name, and its name after a rename."""
    return f"thing{number}", f"renamed{number}"


def declare(program: Program) -> Callable[[], None]:
    """The program as a function."""

    def run() -> None:
        groups = [Group(f"group{n}") for n in range(2)]
        places = [Place(f"place{n}", f"place{n}{'-moved' if n in program.moved else ''}") for n in range(2)]
        made: dict[int, Thing] = {}
        for number, node in enumerate(program.nodes):
            if not node.there:
                continue
            parent = None if node.inside is None else groups[node.inside]
            parents = [None, *groups]
            aliases = [
                Alias(name=name, parent=other if other is not None else pulumi.ROOT_STACK_RESOURCE)
                for name in names_of(number)
                for other in parents
                if (name, other) != (names_of(number)[node.renamed], parent)
            ]
            swept = node.deleted_with
            options = ResourceOptions(
                parent=parent,
                aliases=aliases,
                provider=None if node.provider is None else places[node.provider],
                depends_on=[made[n] for n in program.present(node.after, number)],
                delete_before_replace=node.delete_first,
                retain_on_delete=node.retained,
                protect=number in program.protected,
                deleted_with=made.get(swept) if swept is not None else None,
                ignore_changes=["size"] if node.ignores else None,
                replace_on_changes=["size"] if node.replaced_on else None,
            )
            inputs: dict[str, Any] = {f"from{n}": made[n].address for n in program.present(node.needs, number)}
            if node.token is not None:
                inputs["token"] = pulumi.Output.secret(f"{HIDDEN}{node.token}")
            made[number] = Thing(names_of(number)[node.renamed], options, size=node.size, kind=node.kind, **inputs)

    return run

"""tinycloud for the rules: one rule of its own, and what its annotation means."""

from __future__ import annotations

from collections.abc import Iterator

from policy.clouds.interface import Mark, PolicyCloud, Signs
from policy.rules import ADVISORY, LOW, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem
from tinycloud.annotations import CATALOGUE, PREFIX


def problems(subject: Subject) -> Iterator[Problem]:
    if subject.kind == "tinycloud:index:Cluster" and subject.name == "nameless":
        yield lambda: "the cluster has no name"


CLOUD = PolicyCloud(
    name="tiny",
    signs=Signs(types=("tinycloud:",), called="tiny"),
    catalogue=CATALOGUE,
    policies=(
        ResourceRule(
            "tiny-cluster-has-name",
            problems,
            title="Clusters have names",
            why="Clusters have names.",
            level=ADVISORY,
            severity=LOW,
            judges="Clusters of tinycloud.",
            remedy="Name the cluster.",
            url="https://example.com",
            tags=["tiny"],
        ),
    ),
    internal=(Mark(f"{PREFIX}scheme", ("internal",)),),
)

"""Defects planted in clouds, and for each the test of the suite that must fail because of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cloud_controller.load_balancers.model import CLUSTER_TAG
from tests.contract import test_creation, test_fencing, test_ownership
from tests.contract.harness import Harness


@dataclass(frozen=True)
class Mutant:
    """A defect of a cloud. `plant` changes what `Harness.new_cloud` has returned."""

    of: str
    defect: str
    plant: Callable[[Any], None]
    found_by: Callable[[Harness], None]

    def __str__(self) -> str:
        return f"{self.of}: {self.defect}"


class Planted:
    """A harness of a cloud that has the defect."""

    def __init__(self, harness: Harness, plant: Callable[[Any], None]) -> None:
        self._harness = harness
        self._plant = plant

    def __getattr__(self, name: str) -> Any:
        return getattr(self._harness, name)

    def new_cloud(self) -> Any:
        """The cloud with its defect."""
        cloud = self._harness.new_cloud()
        self._plant(cloud)
        return cloud


def calls(alter: Callable[..., Any]) -> Callable[[Any], None]:
    """tinycloud, where `alter(call, operation, *arguments)` stands in for its client's `call`."""

    def plant(cloud: Any) -> None:
        call = cloud.client.call
        cloud.client.call = lambda operation, *arguments: alter(call, operation, *arguments)

    return plant


# ---------------------------------------------------------------------------------------------------------- tinycloud


def token_ignored(call: Any, operation: str, *arguments: Any) -> Any:
    if operation == "create_load_balancer":
        arguments = (arguments[0], object())
    return call(operation, *arguments)


def mark_not_written(call: Any, operation: str, *arguments: Any) -> Any:
    if operation == "create_load_balancer":
        tags = {key: value for key, value in arguments[0].tags.items() if key != CLUSTER_TAG}
        arguments = (replace(arguments[0], tags=tags), arguments[1])
    return call(operation, *arguments)


def deletion_by_name(call: Any, operation: str, *arguments: Any) -> Any:
    answer = call(operation, *arguments)
    if operation == "delete_load_balancer":
        found, _ = call("list_load_balancers", (), "")
        for lb in found:
            if "default-web" in lb.model.name:
                call("delete_load_balancer", lb.id)
    return answer


def fence_not_passed_on(cloud: Any) -> None:
    cloud.fence_writes = lambda _: None


def fence_asked_at_the_first_attempt_only(cloud: Any) -> None:
    attempt = cloud.client._attempt

    def unfenced_retry(number: int, *rest: Any) -> Any:
        fence = cloud.client.fence
        cloud.client.fence = fence if number == 0 else lambda: None
        try:
            return attempt(number, *rest)
        finally:
            cloud.client.fence = fence

    cloud.client._attempt = unfenced_retry


MUTANTS = (
    Mutant(
        "tinycloud",
        "the client token is ignored",
        calls(token_ignored),
        test_creation.test_the_same_token_never_makes_a_second_load_balancer,
    ),
    Mutant(
        "tinycloud",
        "the cluster's mark is not written",
        calls(mark_not_written),
        test_ownership.test_every_part_of_a_load_balancer_carries_the_owners_mark,
    ),
    Mutant(
        "tinycloud",
        "a deletion goes by the name",
        calls(deletion_by_name),
        test_ownership.test_foreign_resources_are_the_same_after_a_load_balancers_whole_life,
    ),
    Mutant(
        "tinycloud",
        "the fence is not asked",
        fence_not_passed_on,
        test_fencing.test_no_creation_reaches_the_cloud_when_the_fence_refuses_it,
    ),
    Mutant(
        "tinycloud",
        "the fence is asked once an operation",
        fence_asked_at_the_first_attempt_only,
        test_fencing.test_each_attempt_at_a_write_asks_the_fence_again,
    ),
)

"""A controller dies after any changing call on a classic load balancer: the next one finishes, and nothing leaks.

The contract suite shows it of a load balancer whose groups are all ours; here are groups of people, many rules, and a
change between the kinds.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable

import pytest

from cloud_controller.kube import Object
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import STEP, Died, Faults
from tests.cloud_controller.clouds.aws.in_the_account import group_of_people
from tests.cloud_controller.clouds.aws.services import classic, named, nlb
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, port
from tests.contract.aws_account import snapshot
from tests.contract.harness import Snapshot

FEWEST = 4
"""Changing calls of the shortest step."""

Scene = Callable[[AwsAccount], tuple[Object, Object]]
"""A Service as it is made, and as it is changed."""


def of_people(account: AwsAccount) -> tuple[Object, Object]:
    return classic(named(security_groups=group_of_people(account))), classic({}, port(81))


def of_many_rules(_: AwsAccount) -> tuple[Object, Object]:
    ranges = ",".join(f"10.{number}.0.0/24" for number in range(0, 60, 2))
    return classic(named(load_balancer_source_ranges=ranges), *(port(each) for each in (80, 90, 100))), classic()


def from_classic_to_network(_: AwsAccount) -> tuple[Object, Object]:
    return classic(), nlb()


def from_network_to_classic(_: AwsAccount) -> tuple[Object, Object]:
    return nlb(), classic()


Crashing = Callable[[Callable[[], None], Callable[[], Snapshot]], None]


@pytest.fixture
def crashing(account: AwsAccount, cluster: Cluster, request: pytest.FixtureRequest) -> Crashing:
    """Lets a controller die after this, then that of the changing calls of a step, each time followed by the end of it.

    The end must be the same whatever call it was, and put things back as they were before the step.
    """

    def run(step: Callable[[], None], end: Callable[[], Snapshot]) -> None:
        expected = end()
        first = 1 if STEP == 1 else 1 + zlib.crc32(request.node.name.encode()) % FEWEST
        for calls in itertools.count(first, STEP):
            running = Running(account, cluster, wrap=Faults(calls, dies=True))
            step()
            try:
                running.settle(rounds=6)
            except Died:
                assert end() == expected, f"died after {calls} changing calls, the last: {running.calls.made[-1]}"
            else:
                assert calls > FEWEST, "there was nothing to die of"
                return

    return run


@pytest.fixture
def asked(account: AwsAccount, cluster: Cluster) -> Callable[[Object], Snapshot]:
    """Lets another controller give the Service what it asks for; what there is then."""

    def ask(service: Object) -> Snapshot:
        cluster.put(service)
        Running(account, cluster).settle(rounds=6)
        return snapshot()

    return ask


@pytest.fixture
def removed(account: AwsAccount, cluster: Cluster) -> Callable[[], Snapshot]:
    """Lets another controller remove what the Service has, which goes; what there is then."""

    def remove() -> Snapshot:
        if WEB in cluster.objects["services"]:
            cluster.delete_service()
        Running(account, cluster).settle(rounds=6)
        return snapshot()

    return remove


Asked = Callable[[Object], Snapshot]
Removed = Callable[[], Snapshot]


@pytest.mark.parametrize("scene", [of_people, of_many_rules])
def test_a_creation_that_dies_anywhere_is_completed_and_everything_goes_afterwards(
    account: AwsAccount, cluster: Cluster, crashing: Crashing, asked: Asked, removed: Removed, scene: Scene
) -> None:
    service, _ = scene(account)
    before = snapshot()

    def completed_and_removed() -> Snapshot:
        made = asked(service)
        assert removed() == before
        return made

    crashing(lambda: cluster.put(service), completed_and_removed)


@pytest.mark.parametrize("scene", [of_people, of_many_rules, from_classic_to_network, from_network_to_classic])
def test_a_change_that_dies_anywhere_is_completed(
    account: AwsAccount, cluster: Cluster, crashing: Crashing, asked: Asked, removed: Removed, scene: Scene
) -> None:
    service, changed = scene(account)
    asked(service)

    def changed_and_back() -> Snapshot:
        result = asked(changed)
        removed()
        asked(service)
        return result

    crashing(lambda: cluster.put(changed), changed_and_back)


def test_a_deletion_that_dies_anywhere_leaves_nothing(
    account: AwsAccount, cluster: Cluster, crashing: Crashing, asked: Asked, removed: Removed
) -> None:
    service, _ = of_people(account)
    before = snapshot()

    def gone_and_back() -> Snapshot:
        assert removed() == before
        asked(service)
        return {}

    asked(service)
    crashing(cluster.delete_service, gone_and_back)

"""A process that dies after any changing call on a classic load balancer: the next one finishes, and nothing leaks.

Every call with CRASH_POINTS=all (`make crash-test`), else every eighth, beginning with another one each scene.
"""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends
from tests.cloud_controller.clouds.aws import as_aws, classic_as_aws
from tests.cloud_controller.clouds.aws.asked_services import backends, classic, named, nlb, node, port
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.crashing import Died, Process, world

STEP = 1 if os.environ.get("CRASH_POINTS") == "all" else 8
FEWEST = 4
"""Changing calls of the shortest step."""

Scene = Callable[[AwsAccount], tuple[Object, Object]]
"""A Service as it is made, and as it is changed."""


def of_ours(_: AwsAccount) -> tuple[Object, Object]:
    first = classic(named(proxy_protocol="*", connection_idle_timeout=120), port(80), port(81))
    return first, classic(named(load_balancer_source_ranges="10.0.0.0/8"), port(80, nodePort=31080), port(82))


def of_people(account: AwsAccount) -> tuple[Object, Object]:
    theirs = account.ec2.create_security_group(GroupName="theirs", Description="theirs", VpcId=account.vpc_id)[
        "GroupId"
    ]
    return classic(named(security_groups=theirs)), classic({}, port(81))


def of_many_rules(_: AwsAccount) -> tuple[Object, Object]:
    ranges = ",".join(f"10.{number}.0.0/24" for number in range(0, 60, 2))
    return classic(named(load_balancer_source_ranges=ranges), *(port(each) for each in (80, 90, 100))), classic()


def from_classic_to_network(_: AwsAccount) -> tuple[Object, Object]:
    return classic(), nlb()


def from_network_to_classic(_: AwsAccount) -> tuple[Object, Object]:
    return nlb(), classic()


@pytest.fixture(autouse=True)
def _as_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    as_aws.mend(monkeypatch)
    classic_as_aws.mend(monkeypatch)


@pytest.fixture
def members(account: AwsAccount) -> Backends:
    return backends(*(node(provider_id=f"aws:///a/{each['InstanceId']}") for each in account.launch(2)))


Crashing = Callable[[Callable[[Process], None], Callable[[], Mapping[str, Any]]], None]


@pytest.fixture
def crashing(account: AwsAccount, request: pytest.FixtureRequest) -> Crashing:
    """Lets a step die after this, then that of its changing calls, each time followed by the end of it all.

    The end must be the same whatever call it was, and put things back as they were before the step.
    """

    def run(step: Callable[[Process], None], end: Callable[[], Mapping[str, Any]]) -> None:
        expected = end()
        first = 1 if STEP == 1 else 1 + zlib.crc32(request.node.name.encode()) % FEWEST
        for calls in itertools.count(first, STEP):
            process = Process(account, dies_after=calls)
            try:
                step(process)
            except Died:
                assert end() == expected, f"died after {calls} changing calls, the last: {process.calls.made[-1]}"
            else:
                assert calls > FEWEST, "there was nothing to die of"
                return

    return run


@pytest.mark.parametrize("scene", [of_ours, of_people, of_many_rules])
def test_a_creation_that_dies_anywhere_is_completed_and_everything_goes_afterwards(
    account: AwsAccount, members: Backends, crashing: Crashing, scene: Scene
) -> None:
    service, _ = scene(account)
    before = world(account)

    def completed_and_removed() -> Mapping[str, Any]:
        Process(account).converge(service, members)
        made = world(account)
        Process(account).converge(service, members, wanted=False)
        assert world(account) == before
        return made

    crashing(lambda process: process.converge(service, members), completed_and_removed)


@pytest.mark.parametrize("scene", [of_ours, of_people])
def test_a_creation_that_dies_anywhere_is_removed_where_the_service_goes_meanwhile(
    account: AwsAccount, members: Backends, crashing: Crashing, scene: Scene
) -> None:
    service, _ = scene(account)
    before = world(account)

    def removed() -> Mapping[str, Any]:
        Process(account).converge(service, members, wanted=False)
        return world(account)

    crashing(lambda process: process.converge(service, members), removed)

    assert world(account) != before
    Process(account).converge(service, members, wanted=False)
    assert world(account) == before


@pytest.mark.parametrize("scene", [of_ours, of_people, of_many_rules, from_classic_to_network, from_network_to_classic])
def test_a_change_that_dies_anywhere_is_completed(
    account: AwsAccount, members: Backends, crashing: Crashing, scene: Scene
) -> None:
    service, changed = scene(account)
    Process(account).converge(service, members)

    def changed_and_back() -> Mapping[str, Any]:
        Process(account).converge(changed, members)
        result = world(account)
        Process(account).converge(changed, members, wanted=False)
        Process(account).converge(service, members)
        return result

    crashing(lambda process: process.converge(changed, members), changed_and_back)


@pytest.mark.parametrize("scene", [of_ours, of_people])
def test_a_deletion_that_dies_anywhere_leaves_nothing(
    account: AwsAccount, members: Backends, crashing: Crashing, scene: Scene
) -> None:
    service, _ = scene(account)
    before = world(account)

    def gone_and_back() -> Mapping[str, Any]:
        Process(account).converge(service, members, wanted=False)
        assert world(account) == before
        Process(account).converge(service, members)
        return {}

    Process(account).converge(service, members)
    crashing(lambda process: process.converge(service, members, wanted=False), gone_and_back)

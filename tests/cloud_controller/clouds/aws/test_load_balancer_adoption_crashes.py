"""A controller that dies after any call of an adoption, or misses its answer: the next one finishes what it began."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import Unavailable
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import STEP, Died, Faults
from tests.cloud_controller.clouds.aws.services import put_nodes
from tests.cloud_controller.clouds.aws.upstream_world import Upstream, upstream_name
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running
from tests.contract.aws_account import snapshot

MOST = 16
"""Changing calls of an adoption and deletion, and a few more: then nothing happens."""


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def finish(account: AwsAccount, cluster: Cluster, fault: Faults) -> None:
    """A controller that the fault happens to, and if need be another one."""
    try:
        running = Running(account, cluster, wrap=fault, started=False)
        running.resync()
        running.settle()
    except (Died, Unavailable):
        pass
    Running(account, cluster).settle(rounds=6)


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("point", range(1, MOST, max(1, STEP // 2)))
@pytest.mark.parametrize("name", ["nlb-source-ranges", "classic-plain"])
def test_an_adoption_that_broke_off_is_finished(
    name: str, point: int, dies: bool, account: AwsAccount, cluster: Cluster
) -> None:
    machines = account.launch(4)
    put_nodes(cluster, machines)
    upstream = Upstream(account, machines)
    empty = snapshot()
    service = upstream.serve(name)
    before = snapshot()
    cluster.put(service)
    lb = upstream_name(service["metadata"]["uid"])

    finish(account, cluster, Faults(point, dies=dies))

    found = snapshot()
    kind = "network" if name.startswith("nlb") else "classic"
    assert [key for key in found if key.startswith(("network/", "classic/"))] == [f"{kind}/{lb}"]
    assert before != found
    running = Running(account, cluster).settle()
    assert running.calls.writes == {}

    cluster.delete_service(f"default/{name}")
    finish(account, cluster, Faults(point, dies=dies))
    assert not cluster.objects["services"]
    assert snapshot() == empty

"""leader: whether one of the CCM's pods leads."""

from __future__ import annotations

import pytest

from cloud_controller.doctor.checks.leader import CHECK
from cloud_controller.doctor.findings import Severity
from cloud_controller.kube import DAEMON_SETS, LEASES, NODES, ForbiddenError
from tests.cloud_controller.doctor.manager import (
    ARGUMENTS,
    NAME,
    NAMESPACE,
    ago,
    cluster,
    daemon_set,
    found,
    lease,
    node,
    passes,
    run,
)


@pytest.mark.parametrize("holder", ["control-plane-0_1", "control-plane-0.example.com_1", f"{NAME}-a_1"])
def test_a_lease_held_by_a_pod_is_no_finding(holder: str) -> None:
    assert passes(CHECK, cluster(lease(holder)))


def test_a_machine_may_have_another_name_than_its_node() -> None:
    api = cluster()
    control_plane = node()
    control_plane["metadata"]["labels"]["kubernetes.io/hostname"] = "ip-10-0-0-1"
    api.put(NODES, control_plane)
    api.put(LEASES, lease("ip-10-0-0-1_1"))

    assert passes(CHECK, api)


def test_a_lease_that_does_not_exist_is_a_finding() -> None:
    api = cluster()
    api.remove(LEASES, f"{NAMESPACE}/{NAME}")

    assert "its Lease does not exist" in found(CHECK, api).what


def test_a_lease_that_ran_out_names_its_last_holder() -> None:
    [evidence] = found(CHECK, cluster(lease(renewed=ago(minutes=5)))).evidence

    assert evidence.endswith("for 15 s by control-plane-0_1")


def test_a_lease_that_is_renewed_by_a_clock_behind_ours_is_no_finding() -> None:
    api = cluster(lease(renewed=ago(minutes=1)))

    def renew(_: float) -> None:
        api.put(LEASES, lease(renewed=ago(seconds=57)))

    assert passes(CHECK, api, pause=renew)


def test_a_released_lease_is_a_finding() -> None:
    assert "its holder released it" in found(CHECK, cluster(lease(""))).evidence[0]


def test_a_ccm_without_leader_election_needs_no_lease() -> None:
    api = cluster(daemon_set(*ARGUMENTS, "--leader-elect=false"))
    api.remove(LEASES, f"{NAMESPACE}/{NAME}")

    assert passes(CHECK, api)


def test_a_holder_that_is_none_of_the_pods_is_a_warning() -> None:
    finding = found(CHECK, cluster(lease("laptop_1")))

    assert finding.severity is Severity.WARNING
    assert finding.evidence == ("holder laptop_1", f"pods {NAME}-a")


def test_a_leader_that_changes_every_few_minutes_is_a_warning() -> None:
    assert found(CHECK, cluster(lease(leaseTransitions=480))).what == "the leader changes every 6 min on average"


def test_a_leader_that_has_stayed_for_an_hour_changes_no_more() -> None:
    assert passes(CHECK, cluster(lease(leaseTransitions=480, acquireTime=ago(hours=1))))


def test_a_lease_that_may_not_be_read_is_not_checked() -> None:
    api = cluster()
    api.fail(ForbiddenError(403, "Forbidden", "cannot get leases"), "get")

    assert run(CHECK, api).not_done == "cannot get leases"


def test_the_lease_is_the_one_that_the_ccm_is_told_to_lead_by() -> None:
    api = cluster()
    api.remove(LEASES, f"{NAMESPACE}/{NAME}")
    api.put(DAEMON_SETS, daemon_set(*ARGUMENTS, "--leader-elect-resource-name=another"))
    other = lease()
    other["metadata"]["name"] = "another"
    api.put(LEASES, other)

    assert passes(CHECK, api)

"""Rule `ccm-workload-set-probes`."""

from __future__ import annotations

from typing import Any

import pytest

from local.engine.policies.host import AnalyzedResource, PolicyHost
from local.engine.values import UNKNOWN, PropertyMap
from tests.policy_objects import CONTAINER, EXEMPT, ccm, of, without

RULE = "ccm-workload-set-probes"
BARE = without(CONTAINER, "livenessProbe", "readinessProbe")


def probed(probe: Any, **container: Any) -> AnalyzedResource:
    """A CCM whose liveness probe is the one given."""
    return ccm(container={"livenessProbe": probe, **container})


def http(port: Any, **more: Any) -> PropertyMap:
    return {"httpGet": {"path": "/healthz", "port": port, **more}}


def test_each_missing_probe_of_a_ccm_is_reported(pack: PolicyHost) -> None:
    [finding] = pack.analyze(ccm(containers=[BARE]))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "medium")
    assert finding.message == "container manager has no liveness probe; container manager has no readiness probe"


def test_an_empty_probe_does_not_count(pack: PolicyHost) -> None:
    assert of(pack.analyze(probed({"periodSeconds": 5})), RULE) == ["advisory"]


@pytest.mark.parametrize(
    "probe",
    [
        {"exec": {"command": ["/bin/healthy"]}},
        {"tcpSocket": {"port": 10258}},
        {"grpc": {"port": 10258}},
        http(8080),
        http("metrics"),
        http("secure", scheme="HTTPS"),
    ],
)
def test_any_probe_that_can_succeed_passes(pack: PolicyHost, probe: PropertyMap) -> None:
    ports = [{"name": "secure", "containerPort": 10258}, {"name": "metrics", "containerPort": 8080}]

    assert of(pack.analyze(probed(probe, ports=ports)), RULE) == []


@pytest.mark.parametrize("port", [10258, "10258", "secure"])
@pytest.mark.parametrize("scheme", [{}, {"scheme": "HTTP"}])
def test_a_probe_that_speaks_http_to_the_tls_port_is_reported(
    pack: PolicyHost, port: int | str, scheme: PropertyMap
) -> None:
    ports = [{"name": "secure", "containerPort": 10258}]

    [finding] = pack.analyze(probed(http(port, **scheme), ports=ports))

    assert finding.message.startswith("container manager: the liveness probe speaks HTTP to a TLS port")


def test_the_tls_port_is_that_of_the_flag(pack: PolicyHost) -> None:
    args = ["run", "--secure-port=9443"]

    assert of(pack.analyze(probed(http(9443), args=args)), RULE) == ["advisory"]
    assert of(pack.analyze(probed(http(10258), args=args)), RULE) == []


def test_other_containers_and_other_workloads_need_no_probes(pack: PolicyHost) -> None:
    sidecar = {"name": "proxy", "image": "registry.example/proxy:1.0.0"}

    assert of(pack.analyze(ccm(containers=[sidecar, CONTAINER])), RULE) == []
    assert of(pack.analyze(ccm(containers=[sidecar])), RULE) == []


def test_an_exempt_ccm_is_left_alone(pack: PolicyHost) -> None:
    assert of(pack.analyze(ccm(containers=[BARE], name=EXEMPT)), RULE) == []


@pytest.mark.parametrize(
    "unknown",
    [
        probed(UNKNOWN),
        probed(http(UNKNOWN)),
        probed(http(10258, scheme=UNKNOWN)),
        probed(http(8080), args=[UNKNOWN]),
        probed(None, image=UNKNOWN),
    ],
)
def test_an_answer_that_depends_on_an_unknown_value_is_not_evaluated(
    pack: PolicyHost, unknown: AnalyzedResource
) -> None:
    assert of(pack.analyze(unknown), RULE) == ["not-evaluated"]


@pytest.mark.parametrize(
    "known",
    [
        probed(http(UNKNOWN, scheme="HTTPS")),
        probed(http(10258, path=UNKNOWN, scheme="HTTPS")),
        probed({"exec": {"command": UNKNOWN}}),
        ccm(container={"image": UNKNOWN}),
    ],
)
def test_an_unknown_value_that_decides_nothing_is_ignored(pack: PolicyHost, known: AnalyzedResource) -> None:
    assert of(pack.analyze(known), RULE) == []


def test_a_missing_probe_is_reported_beside_an_unknown_one(pack: PolicyHost) -> None:
    half = {**BARE, "readinessProbe": UNKNOWN}

    assert sorted(of(pack.analyze(ccm(containers=[half])), RULE)) == ["advisory", "not-evaluated"]

"""Rule `ccm-workload-set-probes`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, PropertyMap
from tests.policy_objects import CONTAINER, ccm, of, patch, without

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
        {"exec": {"command": ["sh", "-c", "curl -fk https://localhost:10258/healthz"]}},
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

    [finding] = pack.analyze(probed(http(9443), args=args, readinessProbe=http(9443, scheme="HTTPS")))

    assert finding.message.startswith("container manager: the liveness probe speaks HTTP to a TLS port")


def test_a_probe_of_a_port_that_a_flag_names_passes(pack: PolicyHost) -> None:
    args = ["run", "--health-probe-bind-address=:8081"]

    assert of(pack.analyze(probed(http(8081), args=args)), RULE) == []


@pytest.mark.parametrize(
    "probe",
    [
        {"tcpSocket": {"port": 1}},
        {"grpc": {"port": 10260}},
        http(8080),
        http("metrics"),
    ],
)
def test_a_probe_of_a_port_that_is_not_served_is_reported(pack: PolicyHost, probe: PropertyMap) -> None:
    [finding] = pack.analyze(probed(probe, ports=[{"name": "secure", "containerPort": 10258}]))

    assert finding.message == (
        "container manager: the liveness probe asks a port that the manager does not serve: "
        "--secure-port is 10258, and no flag or port names another"
    )


@pytest.mark.parametrize("command", [["true"], ["/bin/true"], ["exit", "0"], ["sh", "-c", "curl localhost || true"]])
def test_a_probe_whose_command_cannot_fail_is_reported(pack: PolicyHost, command: list[str]) -> None:
    [finding] = pack.analyze(probed({"exec": {"command": command}}))

    assert "the liveness probe runs a command that cannot fail" in finding.message


@pytest.mark.parametrize("slow", [{"failureThreshold": 100000}, {"failureThreshold": 3, "periodSeconds": 3600}])
def test_a_probe_that_fails_only_after_ten_minutes_is_reported(pack: PolicyHost, slow: PropertyMap) -> None:
    [finding] = pack.analyze(probed({**http(10258, scheme="HTTPS"), **slow}))

    assert "the liveness probe fails only after" in finding.message


def test_only_the_liveness_probe_must_not_ask_readyz(pack: PolicyHost) -> None:
    ready = {"httpGet": {"path": "/readyz?verbose", "port": 10258, "scheme": "HTTPS"}}

    [finding] = pack.analyze(ccm(container={"livenessProbe": ready, "readinessProbe": ready}))

    assert finding.message == (
        "container manager: the liveness probe asks /readyz, so that a manager that only waits is restarted; "
        "set path /healthz or /livez"
    )


def test_a_patch_may_leave_probes_to_others_but_not_set_wrong_ones(pack: PolicyHost) -> None:
    useless = {**BARE, "livenessProbe": {"exec": {"command": ["true"]}}}

    assert of(pack.analyze(patch(ccm(containers=[BARE]))), RULE) == []
    assert of(pack.analyze(patch(ccm(containers=[useless]))), RULE) == ["advisory"]


def test_a_job_needs_no_probes(pack: PolicyHost) -> None:
    assert of(pack.analyze(replace(ccm(containers=[BARE]), type="kubernetes:batch/v1:Job")), RULE) == []


def test_other_containers_need_no_probes(pack: PolicyHost) -> None:
    sidecar = {"name": "proxy", "image": "registry.example/proxy:1.0.0"}

    assert of(pack.analyze(ccm(containers=[sidecar, CONTAINER])), RULE) == []


@pytest.mark.parametrize(
    "unknown",
    [
        probed(UNKNOWN),
        probed(http(UNKNOWN)),
        probed(http(10258, scheme=UNKNOWN)),
        probed(http(8080), args=[UNKNOWN]),
        probed(http(UNKNOWN, scheme="HTTPS")),
        probed(http(10258, path=UNKNOWN, scheme="HTTPS")),
        probed({"exec": {"command": UNKNOWN}}),
        probed({**http(10258, scheme="HTTPS"), "failureThreshold": UNKNOWN}),
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
        probed(http(8080, scheme="HTTPS"), args=[UNKNOWN], ports=[{"containerPort": 8080}, {"containerPort": 10258}]),
        ccm(container={"args": [UNKNOWN], "ports": [{"containerPort": 10258}]}),
        ccm(container={"image": UNKNOWN}),
    ],
)
def test_an_unknown_value_that_decides_nothing_is_ignored(pack: PolicyHost, known: AnalyzedResource) -> None:
    assert of(pack.analyze(known), RULE) == []


def test_a_missing_probe_is_reported_beside_an_unknown_one(pack: PolicyHost) -> None:
    half = {**BARE, "readinessProbe": UNKNOWN}

    assert sorted(of(pack.analyze(ccm(containers=[half])), RULE)) == ["advisory", "not-evaluated"]

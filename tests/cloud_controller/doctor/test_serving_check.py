"""daemon-health and metrics: what the CCM's pods serve, through the API server."""

from __future__ import annotations

import pytest

from cloud_controller.doctor.checks.serving import HEALTH, METRICS
from cloud_controller.doctor.findings import Check, Severity
from cloud_controller.kube import DAEMON_SETS, PODS
from cloud_controller.kube_errors import from_response
from tests.cloud_controller.doctor.manager import (
    ARGUMENTS,
    NAME,
    NAMESPACE,
    POD,
    PROXIED,
    cluster,
    daemon_set,
    found,
    passes,
    pod,
    run,
    waiting,
)
from tests.fake_kubernetes import FakeKubernetes

READY, METRICS_PATH = f"{PROXIED}/readyz?verbose=", f"{PROXIED}/metrics"
NO_PROXY = (
    b'{"kind":"Status","message":"pods is forbidden: cannot get resource pods/proxy","reason":"Forbidden",'
    b'"details":{"kind":"pods","name":"https:ccm:10258"},"code":403}'
)
REFUSED = b'{"kind":"Status","message":"error trying to reach service: refused","reason":"ServiceUnavailable"}'


def serving(path: str, status: int, body: bytes) -> FakeKubernetes:
    api = cluster()
    api.raws[path] = body if status == 200 else from_response(status, body, f"GET {path}")
    return api


def test_a_daemon_whose_checks_pass_is_no_finding() -> None:
    assert passes(HEALTH, serving(READY, 200, b"[+]state ok\n[+]actions-held 2 wait\n"))


def test_each_failing_check_is_evidence() -> None:
    body = (
        b"[+]state ok\n[-]leader-election no answer\n" + b"[+]cache ok\n" * 100 + b"[-]controller-node AccessDenied\n"
    )

    finding = found(HEALTH, serving(READY, 503, body))

    assert finding.subject == f"pod/{POD}"
    assert finding.what == "it says that it does not work: leader-election, controller-node"
    assert finding.evidence == ("leader-election no answer", "controller-node AccessDenied")


def not_ready(api: FakeKubernetes) -> FakeKubernetes:
    api.put(PODS, pod(conditions=[{"type": "Ready", "status": "False"}]))
    return api


def test_a_daemon_that_nothing_reaches_does_not_answer() -> None:
    assert found(HEALTH, not_ready(serving(READY, 503, REFUSED))).what == "its /readyz does not answer"


@pytest.mark.parametrize(("check", "path"), [(HEALTH, READY), (METRICS, METRICS_PATH)], ids=["health", "metrics"])
def test_a_ready_daemon_that_only_the_api_server_does_not_reach_is_not_checked(check: Check, path: str) -> None:
    result = run(check, serving(path, 503, REFUSED))

    assert result.findings == ()
    assert f"the API server does not reach pod {POD}, which is ready" in (result.not_done or "")


def test_a_daemon_that_answers_with_an_error_is_a_finding() -> None:
    assert found(HEALTH, serving(READY, 500, b"oops")).what == "its /readyz answers with HTTP 500"


def test_another_ccm_is_asked_for_its_healthz() -> None:
    api = serving(f"{PROXIED}/healthz?verbose=", 200, b"ok")
    api.put(DAEMON_SETS, daemon_set("--cloud-provider=aws"))

    assert passes(HEALTH, api)


def test_the_daemons_own_port_is_asked() -> None:
    api = serving(READY.replace("10258", "11258"), 200, b"ok")
    api.put(DAEMON_SETS, daemon_set(*ARGUMENTS, "--secure-port=11258"))

    assert passes(HEALTH, api)


def test_a_pod_that_does_not_run_is_not_asked() -> None:
    assert passes(HEALTH, cluster(waiting("CrashLoopBackOff")))


def test_without_the_right_to_the_proxy_health_is_not_checked() -> None:
    assert "pods/proxy" in (run(HEALTH, serving(READY, 403, NO_PROXY)).not_done or "")


@pytest.mark.parametrize(
    ("check", "argument"),
    [(HEALTH, "--secure-port=0"), (HEALTH, "--bind-address=127.0.0.1"), (METRICS, "--bind-address=127.0.0.1")],
)
def test_a_daemon_that_others_cannot_reach_is_not_checked(check: Check, argument: str) -> None:
    assert argument in (run(check, cluster(daemon_set(*ARGUMENTS, argument))).not_done or "")


def test_a_daemon_whose_option_turns_http_off_serves_no_metrics() -> None:
    finding = found(METRICS, cluster(daemon_set(*ARGUMENTS, "--secure-port=0")))

    assert finding.severity is Severity.WARNING
    assert finding.subject == f"daemonset/{NAMESPACE}/{NAME}"
    assert finding.evidence == ("--secure-port=0",)


@pytest.mark.parametrize("status", [200, 401, 403])
def test_metrics_that_are_served_or_protected_are_no_finding(status: int) -> None:
    assert passes(METRICS, serving(METRICS_PATH, status, b"a bearer token is required"))


@pytest.mark.parametrize(
    ("status", "body", "what"),
    [(404, b"not found", "answers with HTTP 404"), (503, REFUSED, "does not answer")],
)
def test_metrics_that_are_not_served_are_a_warning(status: int, body: bytes, what: str) -> None:
    finding = found(METRICS, not_ready(serving(METRICS_PATH, status, body)))

    assert finding.severity is Severity.WARNING
    assert finding.what == f"its /metrics {what}"


def test_without_the_right_to_the_proxy_metrics_are_not_checked() -> None:
    assert "pods/proxy" in (run(METRICS, serving(METRICS_PATH, 403, NO_PROXY)).not_done or "")

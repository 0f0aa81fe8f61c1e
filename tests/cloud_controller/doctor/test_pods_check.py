"""ccm-pods: why the CCM's pods do not run."""

from __future__ import annotations

import pytest

from cloud_controller import logs
from cloud_controller.doctor.checks.pods import CHECK
from cloud_controller.doctor.findings import Severity
from cloud_controller.kube import DAEMON_SETS, DEPLOYMENTS, LEASES, NODES, PODS, ForbiddenError, Object
from tests.cloud_controller.doctor.manager import (
    NAME,
    NAMESPACE,
    POD,
    ago,
    cluster,
    daemon_set,
    found,
    lease,
    node,
    passes,
    pod,
    run,
    waiting,
    warn,
)

LOG = f"/api/v1/namespaces/{NAMESPACE}/pods/{NAME}-a/log?container={NAME}&previous=true&tailLines=1"
ENDED = {"exitCode": 1, "reason": "Error", "finishedAt": ago(minutes=5)}


def test_a_ready_pod_is_no_finding() -> None:
    assert passes(CHECK, cluster())


def test_a_cluster_without_workload_and_without_leader_has_no_ccm() -> None:
    api = cluster()
    api.remove(DAEMON_SETS, f"{NAMESPACE}/{NAME}")
    api.put(LEASES, lease(renewed=ago(hours=1)))

    assert f"no DaemonSet or Deployment {NAMESPACE}/{NAME}" in found(CHECK, api).what


def test_a_ccm_that_runs_outside_of_the_cluster_shows_by_its_lease() -> None:
    api = cluster()
    api.remove(DAEMON_SETS, f"{NAMESPACE}/{NAME}")

    assert passes(CHECK, api)


def test_a_workload_whose_pods_cannot_be_created_says_why_by_its_event() -> None:
    api = cluster()
    api.remove(PODS, POD)
    warn(api, daemon_set(), "FailedCreate", "exceeded quota")

    finding = found(CHECK, api)

    assert "no pods, of 1 wanted" in finding.what
    assert finding.evidence == ("event FailedCreate: exceeded quota",)


def test_a_daemon_set_that_wants_no_pod_names_its_node_selector() -> None:
    api = cluster()
    api.remove(PODS, POD)
    api.put(DAEMON_SETS, daemon_set(wanted=0))
    control_plane = node()
    del control_plane["metadata"]["labels"]["node-role.kubernetes.io/control-plane"]
    api.put(NODES, control_plane)

    finding = found(CHECK, api)

    assert finding.evidence == ("0 of 1 nodes match its node selector node-role.kubernetes.io/control-plane=",)
    assert "node selector" in finding.remedy


def test_a_deployment_scaled_to_zero_is_to_be_scaled_up() -> None:
    api = cluster()
    api.remove(PODS, POD)
    api.remove(DAEMON_SETS, f"{NAMESPACE}/{NAME}")
    deployment = daemon_set() | {"kind": "Deployment"}
    deployment["spec"]["replicas"] = 0
    api.put(DEPLOYMENTS, deployment)

    assert "kubectl scale -n kube-system deployment" in found(CHECK, api).remedy


def test_fewer_pods_than_wanted_are_a_warning() -> None:
    finding = found(CHECK, cluster(daemon_set(wanted=2)))

    assert (finding.severity, finding.what) == (Severity.WARNING, "1 of 2 pods exist")
    assert f"kubectl describe -n {NAMESPACE} daemonset {NAME}" in finding.remedy


def test_a_pod_that_fits_on_no_node_says_what_the_scheduler_says() -> None:
    api = cluster()
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    api.put(PODS, pod(phase="Pending", conditions=[why]))

    finding = found(CHECK, api)

    assert finding.subject == f"pod/{POD}"
    assert finding.what == "it is not ready: not scheduled (Unschedulable)"
    assert finding.evidence == ("0/1 nodes are available",)


def test_an_image_that_cannot_be_pulled_is_named() -> None:
    finding = found(CHECK, cluster(waiting("ImagePullBackOff", "not found")))

    assert "ImagePullBackOff" in finding.what
    assert "'registry.example/ccm:0.1.0'" in finding.remedy


@pytest.mark.parametrize(
    "starting",
    [
        waiting("ContainerCreating"),
        pod(phase="Pending", conditions=[]),
        pod(conditions=[{"type": "Ready", "status": "False"}], containerStatuses=[{"state": {"running": {}}}]),
    ],
    ids=["creating", "pending", "running"],
)
def test_a_new_pod_may_take_its_time_to_start(starting: Object) -> None:
    assert passes(CHECK, cluster(new(starting)))


@pytest.mark.parametrize(
    "failing",
    [
        waiting("ImagePullBackOff"),
        waiting("ContainerCreating", lastState={"terminated": ENDED}),
        pod(phase="Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]),
    ],
    ids=["image", "crashed", "unschedulable"],
)
def test_a_new_pod_that_fails_is_found_at_once(failing: Object) -> None:
    assert "it is not ready" in found(CHECK, cluster(new(failing))).what


def new(pod: Object) -> Object:
    return pod | {"metadata": pod["metadata"] | {"creationTimestamp": ago(seconds=60)}}


def test_a_missing_secret_is_named_by_the_event() -> None:
    api = cluster(waiting("ContainerCreating"))
    warn(api, pod(), "FailedMount", f'secret "{NAME}-config" not found')

    finding = found(CHECK, api)

    assert finding.evidence == (f'event FailedMount: secret "{NAME}-config" not found',)
    assert "Secret" in finding.remedy


def test_a_missing_secret_of_the_environment_is_named() -> None:
    assert found(CHECK, cluster(waiting("CreateContainerConfigError", 'secret "keys" not found'))).evidence == (
        'secret "keys" not found',
    )


def test_a_crash_loop_shows_how_it_ended_and_the_last_line_of_its_log() -> None:
    api = cluster(waiting("CrashLoopBackOff", lastState={"terminated": ENDED | {"message": "bad flag"}}))
    api.raws[LOG] = b"cloud-controller: --cloud is required\n"

    assert found(CHECK, api).evidence == (
        "it ended with exit code 1 (Error)",
        "bad flag",
        "its last line: cloud-controller: --cloud is required",
    )


def test_a_crash_loop_is_reported_without_the_right_to_read_its_log() -> None:
    api = cluster(waiting("CrashLoopBackOff", lastState={"terminated": ENDED}))
    api.raws[LOG] = ForbiddenError(403, "Forbidden", "pods/log")

    assert found(CHECK, api).evidence == ("it ended with exit code 1 (Error)",)


def test_secrets_in_the_last_line_are_redacted() -> None:
    logs.hide("hush-hush-hush")
    api = cluster(waiting("CrashLoopBackOff", lastState={"terminated": ENDED}))
    api.raws[LOG] = b"refused key hush-hush-hush"

    assert found(CHECK, api).evidence[-1] == "its last line: refused key [redacted]"


def test_a_pod_that_runs_and_is_not_ready_is_to_be_asked_why() -> None:
    finding = found(CHECK, cluster(pod(conditions=[{"type": "Ready", "status": "False", "message": "probe failed"}])))

    assert (finding.what, finding.evidence) == ("it is not ready: phase Running", ("probe failed",))


def test_a_pod_that_runs_and_is_not_ready_follows_from_what_its_daemon_says() -> None:
    assert "daemon-health" in (
        found(CHECK, cluster(pod(conditions=[{"type": "Ready", "status": "False"}]))).follows_from or ()
    )


def test_a_ready_pod_that_restarted_often_and_recently_is_a_warning() -> None:
    finding = found(
        CHECK, cluster(pod(containerStatuses=[{"name": NAME, "restartCount": 7, "lastState": {"terminated": ENDED}}]))
    )

    assert finding.severity is Severity.WARNING
    assert "it restarted 7 times" in finding.what


def test_restarts_of_another_day_are_forgotten() -> None:
    api = cluster()
    ended = ENDED | {"finishedAt": ago(days=1)}
    api.put(PODS, pod(containerStatuses=[{"name": NAME, "restartCount": 7, "lastState": {"terminated": ended}}]))

    assert passes(CHECK, api)


def test_a_pod_that_was_evicted_does_not_count() -> None:
    api = cluster()
    evicted = pod(phase="Failed", reason="Evicted", conditions=[])
    evicted["metadata"]["name"] = f"{NAME}-old"
    api.put(PODS, evicted)

    assert passes(CHECK, api)


def test_pods_that_may_not_be_read_are_not_checked() -> None:
    api = cluster()
    api.fail(ForbiddenError(403, "Forbidden", "cannot list pods"), "list")

    assert run(CHECK, api).not_done == "cannot list pods"

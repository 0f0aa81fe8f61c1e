"""Which workloads and containers are taken for cloud controller managers (`policy/workloads.py`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import CONTAINER, ccm, of, resource, without

TOLERATES, PINS, LEADS = (
    "ccm-workload-tolerate-uninitialized",
    "ccm-workload-pin-image",
    "ccm-workload-elect-leader",
)
OTHER = {**without(CONTAINER, "args"), "image": "registry.example/tools:1.0.0"}


def intolerant(container: dict[str, Any], **options: Any) -> AnalyzedResource:
    """A workload without tolerations: a finding, where it is a CCM."""
    return ccm(containers=[{**OTHER, **container}], tolerations=[], **options)


def of_kind(kind: str, spec: Any) -> AnalyzedResource:
    return resource(f"kubernetes:{kind}", {"metadata": {"name": "ccm", "namespace": "kube-system"}, "spec": spec})


POD = ccm(tolerations=[], container={"image": "cloud-controller"}).properties["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("apps/v1:DaemonSet", {"template": {"spec": POD}}),
        ("apps/v1:Deployment", {"template": {"spec": POD}}),
        ("apps/v1:StatefulSet", {"template": {"spec": POD}}),
        ("apps/v1:ReplicaSet", {"template": {"spec": POD}}),
        ("extensions/v1beta1:ReplicaSet", {"template": {"spec": POD}}),
        ("core/v1:ReplicationController", {"template": {"spec": POD}}),
        ("core/v1:Pod", POD),
        ("apps/v1:DaemonSetPatch", {"template": {"spec": POD}}),
        ("core/v1:PodPatch", POD),
    ],
)
def test_every_kind_that_keeps_pods_running_can_run_a_ccm(pack: PolicyHost, kind: str, spec: Any) -> None:
    assert of(pack.analyze(of_kind(kind, spec)), TOLERATES) == ["advisory"]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("batch/v1:Job", {"template": {"spec": POD}}),
        ("batch/v1:CronJob", {"jobTemplate": {"spec": {"template": {"spec": POD}}}}),
    ],
)
def test_a_job_with_a_ccms_image_is_judged_by_what_it_may_do_but_need_not_stay_available(
    pack: PolicyHost, kind: str, spec: Any
) -> None:
    findings = pack.analyze(of_kind(kind, spec))

    assert {finding.policy for finding in findings} == {PINS}


@pytest.mark.parametrize(
    "container",
    [
        {"image": "registry.example/acs/cloud-controller-manager-amd64:v2.11.2"},
        {"image": "registry.example/cloud-provider-alibaba-cloud:v1"},
        {"command": ["/bin/aws-cloud-controller-manager"]},
        {"command": ["/bin/aws-cloud-controller-manager", UNKNOWN]},
        {"command": ["/ccm-linux-arm64"]},
        {"command": ["sh", "-c", "exec /bin/cloud-controller-manager --v=2"]},
        {"command": ["/bin/sh", "-c"], "args": ["sleep 5; /bin/my-ccm"]},
        {"command": ["tini", "--", "/bin/my-ccm"]},
        {"command": ["tini", "--"], "args": ["my-ccm"]},
        {"args": ["/usr/bin/my-ccm", "--v=2"]},
        {"command": ["python", "-m", "cloud_controller.cli", "run"]},
        {"command": ["python3", "/app/my_ccm.py"]},
        {"args": ["--cloud-provider=example", "--cloud-config=/etc/cloud.conf"]},
        {"args": ["--cloud-provider", "example", "--configure-cloud-routes=false"]},
        {"args": ["--cloud_provider=example", "--cloud_config=/etc/cloud.conf"]},
        {"args": ["--cloud-provider=$(CLOUD)", "--cloud-config=/etc/cloud.conf"]},
        {"command": ["sh", "-c", "exec /manager --cloud-provider=example --allocate-node-cidrs=true"]},
        {"name": "cloud-controller-manager"},
        {"name": "openstack-cloud-controller-manager"},
        {"name": "ccm", "image": UNKNOWN},
    ],
)
def test_a_ccm_is_recognised_behind_what_starts_it_by_its_flags_and_by_its_name(
    pack: PolicyHost, container: dict[str, Any]
) -> None:
    assert of(pack.analyze(intolerant(container)), TOLERATES) == ["advisory"]


@pytest.mark.parametrize("field", ["serviceAccountName", "serviceAccount"])
def test_a_ccm_is_recognised_by_its_pods_service_account(pack: PolicyHost, field: str) -> None:
    assert of(pack.analyze(intolerant({}, **{field: "aws-cloud-controller-manager"})), TOLERATES) == ["advisory"]


def test_with_a_ccms_service_account_the_first_container_is_the_ccm_unless_another_is(pack: PolicyHost) -> None:
    off = {"args": ["--leader-elect=false"]}
    first, second = {**OTHER, **off, "name": "first"}, {**OTHER, **off, "name": "second"}
    named = {**second, "image": "registry.example/cloud-controller:0.1.0"}

    [by_account], [by_image] = (
        [
            finding.message
            for finding in pack.analyze(ccm(containers=both, serviceAccountName="ccm"))
            if finding.policy == LEADS
        ]
        for both in ([first, second], [first, named])
    )

    problem = "--leader-elect is false, but a DaemonSet runs one on each of its nodes"
    assert by_account == f"container first: {problem}"
    assert by_image == f"container second: {problem}"


def test_a_ccm_that_runs_as_a_sidecar_is_recognised_but_not_one_that_runs_before(pack: PolicyHost) -> None:
    manager = {**CONTAINER, "name": "cloud"}

    assert of(
        pack.analyze(intolerant({"name": "web"}, initContainers=[{**manager, "restartPolicy": "Always"}])), TOLERATES
    ) == ["advisory"]
    assert of(pack.analyze(intolerant({"name": "web"}, initContainers=[manager])), TOLERATES) == []
    assert of(pack.analyze(intolerant({"name": "web"}, initContainers=[UNKNOWN])), TOLERATES) == []


@pytest.mark.parametrize(
    "container",
    [
        {
            "name": "cluster-autoscaler",
            "image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.32.0",
            "command": ["./cluster-autoscaler", "--cloud-provider=aws", "--cloud-config=/etc/cloud.conf"],
        },
        {"command": ["/scaler", "--cloud-provider=aws", "--cloud-config=/etc/cloud.conf", "--expander=least-waste"]},
        {"image": "registry.k8s.io/cluster-autoscaler:v1.32.0", "args": ["--cloud-provider=aws", UNKNOWN]},
        {"image": "registry.k8s.io/provider-os/cinder-csi-plugin:v1.32.0", "args": ["--cloud-config=/etc/cloud.conf"]},
        {"image": "registry.k8s.io/provider-os/cinder-csi-plugin:v1.32.0", "args": ["--cloud-config=/a", UNKNOWN]},
        {"image": "registry.example/ebs-csi-driver:v1.40.0", "args": ["controller", "--endpoint=$(CSI_ENDPOINT)"]},
        {"image": "registry.k8s.io/external-dns/external-dns:v0.16.0", "args": ["--provider=aws", "--source=service"]},
        {"image": "registry.example/eks/aws-load-balancer-controller:v2.12.0", "args": ["--cluster-name=a"]},
        {
            "image": "registry.k8s.io/kube-controller-manager:v1.32.0",
            "command": ["kube-controller-manager", "--cloud-provider=external", "--allocate-node-cidrs=true"],
        },
        {"args": ["--cloud-provider=external", "--controllers=*"]},
        {"image": "registry.example/web:ccm"},
        {"image": "registry.example/web:1.0.0-ccm", "args": ["--backend=cloud-controller-manager"]},
        {"image": "registry.example/cloud-controller:0.1.0", "args": ["doctor", "--cloud=mycloud"]},
        {"image": "registry.example/ccm-exporter:1.0.0"},
        {"image": "registry.example/cloud-controller-dashboard:1.0.0"},
        {"command": ["kubectl", "rollout", "status", "ds/cloud-controller-manager"]},
        {"command": ["sh", "-c", "until kubectl get ds cloud-controller-manager; do sleep 1; done"]},
        {"args": ["cloud-controller-manager"]},
        {"name": "wait-for-cloud-controller-manager"},
        {"name": "restart-ccm"},
        {"name": "restart-cloud-controller-manager"},
        {"command": ["sh", "-c", UNKNOWN]},
        {"args": UNKNOWN},
        {"args": ["--database", UNKNOWN]},
    ],
)
def test_an_ordinary_workload_is_not_taken_for_a_ccm(pack: PolicyHost, container: dict[str, Any]) -> None:
    assert of(pack.analyze(intolerant({"name": "web", **container})), TOLERATES) == []


@pytest.mark.parametrize(
    "container",
    [{"image": UNKNOWN}, {"command": UNKNOWN}, {"command": [UNKNOWN]}, {"args": ["--cloud-provider=a", UNKNOWN]}],
)
def test_a_workload_that_may_be_a_ccm_is_not_evaluated(pack: PolicyHost, container: dict[str, Any]) -> None:
    assert of(pack.analyze(intolerant(container)), TOLERATES) == ["not-evaluated"]


def test_a_job_with_a_ccms_service_account_is_no_ccm(pack: PolicyHost) -> None:
    job = replace(
        intolerant({"image": "registry.example/kubectl"}, serviceAccountName="cloud-controller-manager"),
        type="kubernetes:batch/v1:Job",
    )

    assert of(pack.analyze(job), PINS) == []

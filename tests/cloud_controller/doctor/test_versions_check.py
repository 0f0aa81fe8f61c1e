"""ccm-version: versions of Kubernetes, kubelets and the CCM."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pytest

from cloud_controller import known_versions
from cloud_controller.doctor.checks.versions import CHECK
from cloud_controller.doctor.findings import Finding, Severity, examine
from cloud_controller.kube import DAEMON_SETS, NODES, ForbiddenError
from tests.cloud_controller.doctor.manager import cluster, daemon_set, look, node, run
from tests.fake_kubernetes import FakeKubernetes

# By the files' own days, so that no test ages.
CURRENT = datetime.combine(max(map(known_versions.as_of, known_versions.FILES)), time(), UTC)
NEWEST = next(iter(known_versions.load("support")["until"]["upstream"]))
ENDS = date.fromisoformat(known_versions.load("support")["until"]["upstream"][NEWEST])


def on_newest(patch: str = ".99") -> FakeKubernetes:
    api = cluster()
    api.git_version = f"v{NEWEST}{patch}"
    api.put(NODES, kubelet("control-plane-0", f"v{NEWEST}.1"))
    return api


def kubelet(name: str, version: str) -> dict[str, object]:
    return node(name) | {"status": {"nodeInfo": {"kubeletVersion": version}}}


def findings(api: FakeKubernetes, now: datetime = CURRENT, cloud: str = "mycloud") -> tuple[Finding, ...]:
    seen = look(api, cloud=cloud)
    seen.now = now
    [result] = examine([CHECK], seen)
    assert result.not_done is None
    return result.findings


def test_current_versions_are_no_finding() -> None:
    assert findings(on_newest()) == ()


def test_the_end_of_support_is_a_warning_ahead() -> None:
    now = datetime.combine(ENDS - timedelta(days=10), time(), UTC)

    [finding] = (each for each in findings(on_newest(), now) if "support" in each.what and "table" not in each.what)

    assert (finding.severity, finding.what) == (
        Severity.WARNING,
        f"the support of Kubernetes {NEWEST} ends on {ENDS}",
    )


def test_a_vendors_build_has_the_clouds_calendar() -> None:
    api = on_newest()
    api.git_version = "v1.31.99-eks-1234"
    api.put(NODES, kubelet("control-plane-0", "v1.31.1"))
    until = known_versions.load("support")["until"]["aws"]["1.31"]

    assert f"ended on {until}" in findings(api, cloud="aws")[0].what


def test_a_known_vulnerability_of_kubernetes_is_a_warning() -> None:
    api = on_newest()
    api.git_version = "v1.33.5"
    api.put(NODES, kubelet("control-plane-0", "v1.33.5"))

    assert any("Kubernetes 1.33.5 has CVE-2025-13281" in each.what for each in findings(api))


def test_a_known_vulnerability_of_the_ccm_is_a_warning() -> None:
    api, workload = on_newest(), daemon_set("--cloud-provider=vsphere")
    image = "registry.example/cloud-provider-vsphere/cpi/release/manager:v1.28.0"
    workload["spec"]["template"]["spec"]["containers"][0]["image"] = image
    api.put(DAEMON_SETS, workload)

    [finding] = findings(api)

    assert "has CVE-2023-44487" in finding.what
    assert finding.evidence == (f"image {image}",)


def test_a_vendors_ccm_for_another_kubernetes_is_a_warning() -> None:
    api, workload = on_newest(), daemon_set("--cloud-provider=aws")
    image = "registry.k8s.io/provider-aws/cloud-controller-manager:v1.28.1"
    workload["spec"]["template"]["spec"]["containers"][0]["image"] = image
    api.put(DAEMON_SETS, workload)

    [finding] = findings(api, cloud="aws")

    assert "v1.28.1 is for Kubernetes 1.28" in finding.what


def test_a_kubelet_newer_than_the_api_server_is_a_warning() -> None:
    api = on_newest()
    number = int(NEWEST.partition(".")[2])
    api.put(NODES, kubelet("worker-0", f"v1.{number + 1}.0"))

    [finding] = findings(api)

    assert finding.subject == "node/worker-0"
    assert "newer than the API server" in finding.what


@pytest.mark.parametrize(("behind", "wrong"), [(3, 0), (4, 1)])
def test_kubelets_may_be_three_minor_versions_behind(behind: int, wrong: int) -> None:
    api = on_newest()
    version = f"v1.{int(NEWEST.partition('.')[2]) - behind}.0"
    api.put(NODES, kubelet("worker-0", version), kubelet("worker-1", version))

    assert [each.evidence for each in findings(api)] == [("2 nodes: worker-0, worker-1",)] * wrong


def test_data_older_than_a_month_is_a_warning() -> None:
    later = datetime.combine(min(map(known_versions.as_of, known_versions.FILES)), time(), UTC) + timedelta(days=32)

    assert any("is 32 days old" in each.what for each in findings(on_newest(), later))


def test_nodes_that_may_not_be_read_are_not_checked() -> None:
    api = on_newest()
    api.fail(ForbiddenError(403, "Forbidden", "cannot list nodes"), "list")

    assert run(CHECK, api).not_done == "cannot list nodes"

"""kubernetes-flags: flags of Kubernetes' components, and what the nodes show of them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cloud_controller.doctor.checks.kubernetes_flags import CHECK
from cloud_controller.doctor.findings import Severity
from cloud_controller.kube import CONFIG_MAPS, NODES, PODS, ForbiddenError, Object
from tests.cloud_controller.doctor.manager import ago, cluster, daemon_set, found, node, passes, run
from tests.fake_kubernetes import FakeKubernetes

MANAGER = ("--cloud-provider=external", "--allocate-node-cidrs=true", "--cluster-cidr=10.20.0.0/16")
ROUTES = ("node", "route")


def component(name: str, *flags: str) -> Object:
    container = {"name": name, "image": f"registry.k8s.io/{name}:v1.36.1", "command": [f"/usr/bin/{name}", *flags]}
    return {
        "metadata": {"name": f"{name}-cp", "namespace": "kube-system"},
        "spec": {"containers": [container]},
        "status": {"phase": "Running"},
    }


def kubeadm(*others: Object, version: str = "v1.36.1") -> FakeKubernetes:
    """A cluster whose control plane runs in pods; `others` replace those of the same name."""
    api = cluster()
    api.git_version = version
    api.put(PODS, component("kube-apiserver"), component("kube-controller-manager", *MANAGER))
    api.put(PODS, component("kube-proxy", "--config=/var/lib/kube-proxy/config.conf"), *others)
    return api


def proxy_config(api: FakeKubernetes, text: str) -> FakeKubernetes:
    api.put(
        CONFIG_MAPS, {"metadata": {"name": "kube-proxy", "namespace": "kube-system"}, "data": {"config.conf": text}}
    )
    return api


def test_components_that_agree_are_no_finding() -> None:
    assert passes(CHECK, proxy_config(kubeadm(), "clusterCIDR: 10.20.0.0/16"), controllers=ROUTES)


def test_a_control_plane_that_is_not_seen_is_no_finding() -> None:
    assert passes(CHECK, cluster(), controllers=ROUTES)


@pytest.mark.parametrize(
    ("flag", "severity"), [("--v=2", Severity.WARNING), ("--cloud-provider=aws", Severity.CRITICAL)]
)
def test_a_controller_manager_that_is_not_external_is_a_finding(flag: str, severity: Severity) -> None:
    finding = found(CHECK, kubeadm(component("kube-controller-manager", flag)))

    assert finding.subject == "pod/kube-system/kube-controller-manager-cp"
    assert finding.severity is severity
    assert "--cloud-provider=external" in finding.what


@pytest.mark.parametrize(("version", "severity"), [("v1.29.0", Severity.WARNING), ("v1.33.0", Severity.CRITICAL)])
def test_an_api_server_with_a_cloud_provider_is_a_finding(version: str, severity: Severity) -> None:
    finding = found(CHECK, kubeadm(component("kube-apiserver", "--cloud-provider=external"), version=version))

    assert finding.severity is severity
    assert finding.evidence == ("it has --cloud-provider=external",)


def test_an_old_api_server_may_have_a_cloud_provider() -> None:
    assert passes(CHECK, kubeadm(component("kube-apiserver", "--cloud-provider=external"), version="v1.28.0"))


def test_a_route_controller_needs_a_controller_manager_that_allocates_ranges() -> None:
    api = kubeadm(component("kube-controller-manager", "--cloud-provider=external"))

    assert found(CHECK, api, controllers=ROUTES).evidence == ("it has no --allocate-node-cidrs",)


def test_a_controller_manager_need_not_allocate_ranges_without_a_route_controller() -> None:
    assert passes(CHECK, kubeadm(component("kube-controller-manager", "--cloud-provider=external")))


def test_another_range_of_the_controller_manager_is_a_finding() -> None:
    api = kubeadm(component("kube-controller-manager", *MANAGER[:2], "--cluster-cidr=10.99.0.0/16"))

    finding = found(CHECK, api, controllers=ROUTES)

    assert finding.evidence == ("it has --cluster-cidr=10.99.0.0/16", "the CCM has --cluster-cidr=10.20.0.0/16")


def test_a_node_without_taint_and_provider_id_has_a_kubelet_that_is_not_external() -> None:
    finding = found(CHECK, cluster(node("worker-0", providerID="")))

    assert finding.subject == "node/worker-0"
    assert "--cloud-provider=external" in finding.what


def test_a_node_that_waits_for_the_ccm_has_an_external_kubelet() -> None:
    api = cluster()
    taint = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}
    api.put(NODES, node("worker-0", providerID="", taints=[taint]))

    assert passes(CHECK, api)


@pytest.mark.parametrize(
    ("controllers", "severity"), [(ROUTES, Severity.CRITICAL), (("node",), Severity.WARNING)], ids=["routes", "none"]
)
def test_pod_ranges_outside_of_the_cluster_cidr_are_one_finding(
    controllers: tuple[str, ...], severity: Severity
) -> None:
    finding = found(
        CHECK,
        cluster(node("a", podCIDRs=["10.99.0.0/24"]), node("b", podCIDRs=["10.20.1.0/24", "fd00::/64"])),
        controllers=controllers,
    )

    assert finding.severity is severity
    assert finding.evidence == ("node a: 10.99.0.0/24", "node b: 10.20.1.0/24, fd00::/64")


def test_a_pod_range_is_compared_whatever_its_host_bits() -> None:
    assert passes(CHECK, cluster(node("a", podCIDRs=["10.20.1.5/24"])))


def test_without_a_cluster_cidr_pod_ranges_are_not_compared() -> None:
    assert passes(CHECK, cluster(daemon_set("run", "--cloud=mycloud")))


def test_a_node_without_a_pod_range_gets_no_route() -> None:
    assert found(CHECK, cluster(node("worker-0", podCIDR="", podCIDRs=[])), controllers=ROUTES).evidence == (
        "node worker-0: no spec.podCIDRs",
    )


@pytest.mark.parametrize(
    ("age", "more"),
    [(timedelta(seconds=30), {}), (timedelta(minutes=5), {"grace": timedelta(minutes=10)})],
    ids=["by default", "as the command says"],
)
def test_a_new_node_has_time_to_get_its_range_and_provider_id(age: timedelta, more: dict[str, timedelta]) -> None:
    new = node("worker-0", podCIDR="", podCIDRs=[], providerID="")
    new["metadata"]["creationTimestamp"] = ago(seconds=age.total_seconds())

    assert passes(CHECK, cluster(new), controllers=ROUTES, **more)


def test_another_range_of_kube_proxy_is_a_warning() -> None:
    finding = found(CHECK, proxy_config(kubeadm(), "clusterCIDR: 10.99.0.0/16"))

    assert finding.severity is Severity.WARNING
    assert finding.evidence[0] == "kube-proxy has 10.99.0.0/16"


@pytest.mark.parametrize("address", ["127.0.0.1:10256", "0.0.0.0:0"])
def test_a_health_check_of_kube_proxy_that_load_balancers_do_not_reach_is_a_finding(address: str) -> None:
    finding = found(CHECK, kubeadm(component("kube-proxy", f"--healthz-bind-address={address}")))

    assert finding.evidence == (f"its health check is at {address}",)


def test_pods_that_may_not_be_read_are_not_checked() -> None:
    api = cluster()
    api.fail(ForbiddenError(403, "Forbidden", "cannot list pods"), "list")

    assert run(CHECK, api).not_done == "cannot list pods"

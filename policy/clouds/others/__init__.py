"""The meaning of the annotations of clouds that have no controllers here: their vendors' controllers may run instead.

A cloud that gets controllers moves to a folder of its own, and its entry point with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.terms import Asked
from policy.clouds import vendor_annotations as names
from policy.clouds.interface import Balancers, CcmMatrix, Mark, PolicyCloud, Signs
from policy.clouds.others.versions import judge_azure, judge_gcp


def _with_one_of(catalogue: Catalogue, *annotations: str) -> Callable[[Asked], bool]:
    """That the load balancer ends TLS where one of these annotations is set."""

    def ends_tls(asked: Asked) -> bool:
        return any(catalogue.by_name[name].argument in asked.settings.given for name in annotations)

    return ends_tls


_NOTES = {"lb-service-fit-annotations": "only the names of the annotations are known."}
_FITS = "ccm-workload-fit-kubernetes"
_SHARES = "lb-service-share-without-clash"

_AZURE = "service.beta.kubernetes.io/azure-"

AZURE = PolicyCloud(
    name="azure",
    signs=Signs(
        types=("azure:", "azure-native:"),
        called="azure",
        managed=(
            "azure-native:containerservice:ManagedCluster",
            "azure:containerservice/kubernetesCluster:KubernetesCluster",
        ),
    ),
    catalogue=names.AZURE,
    ccm=CcmMatrix(
        image=re.compile(r"(.*/)?azure-cloud-controller-manager"), providers=frozenset({"azure"}), judge=judge_azure
    ),
    internal=(Mark(f"{_AZURE}load-balancer-internal", ("true",)),),
    limited_elsewhere=(Mark(f"{_AZURE}allowed-service-tags"), Mark(f"{_AZURE}allowed-ip-ranges")),
    unchecked=(Mark("service.beta.kubernetes.io/port_*_no_probe_rule", ("true",)),),
    check_ports=("service.beta.kubernetes.io/port_*_health-probe_port",),
    notes={**_NOTES, _FITS: "the image is `…/azure-cloud-controller-manager`; it has the cluster's minor version."},
)

GCP = PolicyCloud(
    name="gcp",
    signs=Signs(types=("gcp:", "google-native:"), called="gce", managed=("gcp:container/cluster:Cluster",)),
    catalogue=names.GCP,
    ccm=CcmMatrix(
        image=re.compile(r"(.*/)?cloud-provider-gcp/cloud-controller-manager"),
        providers=frozenset({"gce", "gcp"}),
        judge=judge_gcp,
    ),
    internal=(
        Mark("networking.gke.io/load-balancer-type", ("internal",)),
        Mark("cloud.google.com/load-balancer-type", ("internal",)),
    ),
    notes={
        **_NOTES,
        _FITS: "the image is `…/cloud-provider-gcp/cloud-controller-manager`; `v32` of it is for Kubernetes 1.32.",
    },
)

HUAWEI = PolicyCloud(
    name="huawei",
    signs=Signs(types=("huaweicloud:",), called="huaweicloud"),
    catalogue=names.HUAWEI,
    unchecked=(Mark("kubernetes.io/elb.health-check-flag", ("off",)),),
    shares=("kubernetes.io/elb.id",),
    balancers=Balancers(
        ends_tls=_with_one_of(names.HUAWEI, "kubernetes.io/elb.default-tls-container-ref", "kubernetes.io/elb.cert-id")
    ),
    notes={**_NOTES, _SHARES: "`kubernetes.io/elb.id` names the load balancer."},
)

TENCENT = PolicyCloud(
    name="tencent",
    signs=Signs(types=("tencentcloud:",), called="tencentcloud"),
    catalogue=names.TENCENT,
    internal=(
        Mark("service.beta.kubernetes.io/tencentcloud-loadbalancer-type", ("private",)),
        Mark("service.kubernetes.io/qcloud-loadbalancer-internal-subnetid"),
    ),
    shares=("service.kubernetes.io/tke-existed-lbid",),
    balancers=Balancers(ends_tls=_with_one_of(names.TENCENT, "service.cloud.tencent.com/tke-service-config")),
    notes={**_NOTES, _SHARES: "`service.kubernetes.io/tke-existed-lbid` names the load balancer."},
)

VSPHERE = PolicyCloud(
    name="vsphere",
    signs=Signs(types=("vsphere:",), called="vsphere"),
    catalogue=names.VSPHERE,
)

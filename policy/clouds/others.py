"""The meaning of the annotations of clouds that have no controllers here: their vendors' controllers may run instead.

A cloud that gets controllers moves to a folder of its own, and its entry point with it.
"""

from __future__ import annotations

from policy.clouds import vendor_annotations as names
from policy.clouds.interface import Mark, PolicyCloud, Signs

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
    config_files=("azure",),
    internal=(Mark(f"{_AZURE}load-balancer-internal", ("true",)),),
    limited_elsewhere=(Mark(f"{_AZURE}allowed-service-tags"), Mark(f"{_AZURE}allowed-ip-ranges")),
    unchecked=(Mark("service.beta.kubernetes.io/port_*_no_probe_rule", ("true",)),),
)

GCP = PolicyCloud(
    name="gcp",
    signs=Signs(types=("gcp:", "google-native:"), called="gce", managed=("gcp:container/cluster:Cluster",)),
    catalogue=names.GCP,
    config_files=("gce",),
    internal=(
        Mark("networking.gke.io/load-balancer-type", ("internal",)),
        Mark("cloud.google.com/load-balancer-type", ("internal",)),
    ),
)

HUAWEI = PolicyCloud(
    name="huawei",
    signs=Signs(types=("huaweicloud:",), called="huaweicloud"),
    catalogue=names.HUAWEI,
    unchecked=(Mark("kubernetes.io/elb.health-check-flag", ("off",)),),
)

OPENSTACK = PolicyCloud(
    name="openstack",
    signs=Signs(types=("openstack:",), called="openstack"),
    catalogue=names.OPENSTACK,
    config_files=("openstack",),
    internal=(Mark("service.beta.kubernetes.io/openstack-internal-load-balancer", ("true",)),),
    unchecked=(Mark("loadbalancer.openstack.org/enable-health-monitor", ("false",)),),
)

TENCENT = PolicyCloud(
    name="tencent",
    signs=Signs(types=("tencentcloud:",), called="tencentcloud"),
    catalogue=names.TENCENT,
    internal=(
        Mark("service.beta.kubernetes.io/tencentcloud-loadbalancer-type", ("private",)),
        Mark("service.kubernetes.io/qcloud-loadbalancer-internal-subnetid"),
    ),
)

VSPHERE = PolicyCloud(
    name="vsphere",
    signs=Signs(types=("vsphere:",), called="vsphere"),
    catalogue=names.VSPHERE,
    config_files=("vsphere",),
)

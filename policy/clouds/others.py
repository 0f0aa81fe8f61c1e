"""The meaning of the annotations of clouds that have no controllers here: their vendors' controllers may run instead.

A cloud that gets controllers moves to a folder of its own, and its entry point with it.
"""

from __future__ import annotations

from policy.clouds.interface import Mark, PolicyCloud

_AZURE = "service.beta.kubernetes.io/azure-"

AZURE = PolicyCloud(
    name="azure",
    internal=(Mark(f"{_AZURE}load-balancer-internal", ("true",)),),
    limited_elsewhere=(Mark(f"{_AZURE}allowed-service-tags"), Mark(f"{_AZURE}allowed-ip-ranges")),
    unchecked=(Mark("service.beta.kubernetes.io/port_*_no_probe_rule", ("true",)),),
)

GCP = PolicyCloud(
    name="gcp",
    internal=(
        Mark("networking.gke.io/load-balancer-type", ("internal",)),
        Mark("cloud.google.com/load-balancer-type", ("internal",)),
    ),
)

HUAWEI = PolicyCloud(
    name="huawei",
    unchecked=(Mark("kubernetes.io/elb.health-check-flag", ("off",)),),
)

OPENSTACK = PolicyCloud(
    name="openstack",
    internal=(Mark("service.beta.kubernetes.io/openstack-internal-load-balancer", ("true",)),),
    unchecked=(Mark("loadbalancer.openstack.org/enable-health-monitor", ("false",)),),
)

TENCENT = PolicyCloud(
    name="tencent",
    internal=(
        Mark("service.beta.kubernetes.io/tencentcloud-loadbalancer-type", ("private",)),
        Mark("service.kubernetes.io/qcloud-loadbalancer-internal-subnetid"),
    ),
)

VSPHERE = PolicyCloud(name="vsphere")

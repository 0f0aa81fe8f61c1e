"""The meaning of the annotations of clouds that have no controllers here: their vendors' controllers may run instead.

A cloud that gets controllers moves to a folder of its own, and its entry point with it.
"""

from __future__ import annotations

import re

from policy.clouds.interface import CcmMatrix, Mark, PolicyCloud
from policy.clouds.others.versions import judge_azure, judge_gcp

_AZURE = "service.beta.kubernetes.io/azure-"

AZURE = PolicyCloud(
    name="azure",
    ccm=CcmMatrix(
        image=re.compile(r"(.*/)?azure-cloud-controller-manager"), providers=frozenset({"azure"}), judge=judge_azure
    ),
    config_files=("azure",),
    internal=(Mark(f"{_AZURE}load-balancer-internal", ("true",)),),
    limited_elsewhere=(Mark(f"{_AZURE}allowed-service-tags"), Mark(f"{_AZURE}allowed-ip-ranges")),
    unchecked=(Mark("service.beta.kubernetes.io/port_*_no_probe_rule", ("true",)),),
)

GCP = PolicyCloud(
    name="gcp",
    ccm=CcmMatrix(
        image=re.compile(r"(.*/)?cloud-provider-gcp/cloud-controller-manager"),
        providers=frozenset({"gce", "gcp"}),
        judge=judge_gcp,
    ),
    config_files=("gce",),
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
    config_files=("openstack",),
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

VSPHERE = PolicyCloud(name="vsphere", config_files=("vsphere",))

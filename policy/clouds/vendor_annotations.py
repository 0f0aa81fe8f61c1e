"""The names of the annotations that vendors' controllers read, for clouds that have no controllers here.

Only names: what values mean is the vendor's business. As of November 2026 (ccm-behaviour, section 5). Every name with a
prefix given here is the vendor's, so others with it are unknown; without a prefix, only near misses are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cloud_controller.load_balancers.catalogue import Annotation, Catalogue, Mutability

_BETA = "service.beta.kubernetes.io/"
_TKE = "service.kubernetes.io/"
_PORT = "PORT"


def _named(name: str, source: str, suffix: str | None = None, suffix_pattern: str = "") -> Annotation:
    return Annotation(
        name=name,
        argument=re.sub("[^a-z0-9]", "_", name),
        sets="",
        type=str,
        description="",
        applies_to="",
        mutability=Mutability.IN_PLACE,
        since="",
        source=source,
        pattern="(?s:.*)",
        suffix=suffix,
        suffix_pattern=suffix_pattern,
    )


def _catalogue(
    cloud: str, source: str, prefix: str, names: str, others: Iterable[str] = (), owns_prefix: bool = True
) -> Catalogue:
    """`names`: those with the prefix, separated by spaces. `owns_prefix`: no others have it."""
    every = (*(f"{prefix}{name}" for name in names.split()), *others)
    entries = tuple(_named(name, source) for name in every)
    return Catalogue(cloud, (prefix,) if owns_prefix else (), entries, empty_is_unset=True)


_AZURE_SOURCE = "cloud-provider-azure, pkg/consts/consts.go"
_AZURE_NAMES = _catalogue(
    "azure",
    _AZURE_SOURCE,
    f"{_BETA}azure-",
    "load-balancer-ipv4 load-balancer-ipv6 load-balancer-internal load-balancer-internal-subnet load-balancer-mode"
    " load-balancer-resource-group load-balancer-tcp-idle-timeout load-balancer-enable-high-availability-ports"
    " load-balancer-configurations load-balancer-disable-tcp-reset load-balancer-health-probe-protocol"
    " load-balancer-health-probe-interval load-balancer-health-probe-num-of-probe"
    " load-balancer-health-probe-request-path pip-name pip-name-ipv6 pip-prefix-id pip-prefix-id-ipv6 pip-ip-tags"
    " pip-tags dns-label-name allowed-service-tags allowed-ip-ranges deny-all-except-load-balancer-source-ranges"
    " disable-load-balancer-floating-ip disable-load-balancer-nsg-rule additional-public-ips shared-securityrule"
    " pls-create pls-resource-group pls-name pls-ip-configuration-subnet pls-ip-configuration-ip-address-count"
    " pls-ip-configuration-ip-address pls-fqdns pls-proxy-protocol pls-visibility pls-auto-approval",
)
_PER_PORT = "[0-9]+_(?:no_lb_rule|no_probe_rule|health-probe_(?:protocol|port|interval|num-of-probe|request-path))"
AZURE = Catalogue(
    "azure",
    (*_AZURE_NAMES.prefixes, f"{_BETA}port_"),
    (*_AZURE_NAMES.entries, _named(f"{_BETA}port_{_PORT}", _AZURE_SOURCE, _PORT, _PER_PORT)),
    empty_is_unset=True,
)

GCP = _catalogue(
    "gcp",
    "cloud-provider-gcp, gce_annotations.go",
    "networking.gke.io/",
    "load-balancer-type internal-load-balancer-allow-global-access internal-load-balancer-subnet backend-service"
    " target-pool",
    (
        "cloud.google.com/load-balancer-type",
        "alpha.cloud.google.com/load-balancer-backend-share",
        "cloud.google.com/load-balancer-backend-share",
        "cloud.google.com/network-tier",
        "cloud.google.com/l4-rbs",
    ),
    # GKE's other controllers have annotations with it too.
    owns_prefix=False,
)

HUAWEI = _catalogue(
    "huawei",
    "cloud-provider-huaweicloud; CCE's documentation, cce_10_0385",
    "kubernetes.io/elb.",
    "availability-zones class default-tls-container-ref eip-auto-create-option eip-id enable-cross-vpc"
    " enable-transparent-client-ip health-check-flag health-check-option id idle-timeout keep-eip l4-flavor-id"
    " l7-flavor-id lb-algorithm mark request-timeout response-timeout session-affinity-flag session-affinity-option"
    " subnet-id x-forwarded-host autocreate enterpriseID protocol-port cert-id pass-through connection-limit",
    ("kubernetes.io/natgateway.id",),
    # CCE has more of them than its controller's source.
    owns_prefix=False,
)

TENCENT = _catalogue(
    "tencent",
    "tencentcloud-cloud-controller-manager; TKE's documentation",
    f"{_BETA}tencentcloud-loadbalancer-",
    "kind type type-internal-subnet-id name",
    (
        *(
            f"{_TKE}{name}"
            for name in (
                *("loadbalance-id", "tke-existed-lbid", "qcloud-loadbalancer-internal-subnetid"),
                *("qcloud-loadbalancer-internet-charge-type", "qcloud-loadbalancer-internet-max-bandwidth-out"),
                *("local-svc-only-bind-node-with-pod", "qcloud-loadbalancer-backends-label"),
            )
        ),
        *(
            f"service.cloud.tencent.com/{name}"
            for name in ("direct-access", "tke-service-config", "local-svc-weighted-balance")
        ),
    ),
)

VSPHERE = Catalogue("vsphere", (), ())

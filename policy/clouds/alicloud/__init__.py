"""The rules for Alibaba Cloud, and the meaning of its annotations."""

from __future__ import annotations

from cloud_controller.clouds.alicloud.annotations import CATALOGUE, OWN_CLASSES
from cloud_controller.clouds.alicloud.nlb.annotations import NLB
from cloud_controller.clouds.alicloud.versions import IMAGE, judge
from policy.clouds.alicloud.audit import CALLS_ARE_AUDITED
from policy.clouds.alicloud.balancers import BALANCERS, ZONES
from policy.clouds.alicloud.components import COMPONENTS
from policy.clouds.alicloud.config import check, public_apis
from policy.clouds.alicloud.egress import limits_egress
from policy.clouds.alicloud.infrastructure import INFRASTRUCTURE
from policy.clouds.alicloud.meaning import MEANING
from policy.clouds.alicloud.metadata import CCM_REACHES_METADATA
from policy.clouds.alicloud.ram import POLICIES_ARE_NARROW
from policy.clouds.alicloud.trust import ROLES_LIMIT_TRUST
from policy.clouds.interface import CcmMatrix, Mark, PolicyCloud, Roles, Signs


def _marks(argument: str, *values: str, beside: tuple[str, str] | None = None) -> tuple[Mark, ...]:
    """The annotation of this argument under each of its names; its companion has the same prefix."""
    names = _names(argument)
    besides = [Mark(name, (beside[1],)) for name in _names(beside[0])] if beside else [None] * len(names)
    return tuple(Mark(name, values, other) for name, other in zip(names, besides, strict=True))


def _names(argument: str) -> tuple[str, ...]:
    entry = CATALOGUE.by_argument[argument]
    return entry.name, *entry.aliases


NOTES = {
    "lb-service-protect-from-deletion": "the protection is on, unless `delete-protection` switches it off.",
    "lb-service-encrypt-https": (
        "`protocol-port` makes the port one of https (CLB) or tcpssl (NLB); CLB redirects by `forward-port`."
    ),
    "lb-service-serve-node-zones": "NLB's `zone-maps`, with `cross-zone-enabled: off`.",
    "lb-service-share-without-clash": "`alibaba-cloud-loadbalancer-id` names the load balancer.",
    "ccm-avoid-access-key": (
        "ACK clusters and ECS instances take RAM roles; a key is `alicloud:ram/accessKey:AccessKey`, and the variables "
        "are `ALIBABA_CLOUD_ACCESS_KEY_ID`, `ACCESS_KEY_ID` and the like. On ACK, set `enableRrsa` and make a RAM role "
        "for the ServiceAccount, as components/clouds/alicloud/ram.py does "
        "([RRSA](https://www.alibabacloud.com/help/en/ack/ack-managed-and-ack-dedicated/user-guide/"
        "use-rrsa-to-authorize-pods-to-access-different-cloud-services))."
    ),
    "ccm-credential-set-expiry": "90 days are control 1.4 of the CIS benchmark.",
    "ccm-cloud-config-valid": "the parser also knows the file of Alibaba Cloud's own controller.",
    "ccm-use-internal-endpoints": (
        "`network` in the cloud config is `vpc`, or `Endpoints` names other addresses than "
        "`PRODUCT.REGION.aliyuncs.com`; the API of quotas has only a public address and is left alone."
    ),
    "ccm-workload-fit-kubernetes": (
        "the image is `…/cloud-controller-manager-amd64` (or `-arm64`); its version has a row in the matrix that "
        "includes the cluster's. An ACK cluster shows its version."
    ),
    "cluster-version-stay-supported": "ACK's calendar.",
    "cluster-version-avoid-vulnerabilities": "ACK's own builds, such as `1.34.1-aliyun.1`, are not judged.",
    "ccm-version-acknowledge-changes": "the CCM of an ACK cluster, which the cloud runs, is not judged.",
    "cluster-ranges-avoid-overlap": (
        "the range of Services is an ACK cluster's `serviceCidr`; with Terway, pods have addresses of the network."
    ),
}

CLOUD = PolicyCloud(
    name="alicloud",
    signs=Signs(
        types=("alicloud:",),
        called="alicloud",
        managed=(
            "alicloud:cs/managedKubernetes:ManagedKubernetes",
            "alicloud:cs/serverlessKubernetes:ServerlessKubernetes",
        ),
        ccm_classes=(None, *(each for each in NLB.classes if each not in OWN_CLASSES)),
    ),
    catalogue=CATALOGUE,
    policies=(POLICIES_ARE_NARROW, ROLES_LIMIT_TRUST, CCM_REACHES_METADATA, CALLS_ARE_AUDITED),
    infrastructure=INFRASTRUCTURE,
    ccm=CcmMatrix(image=IMAGE, providers=frozenset({"alicloud", "alibabacloud"}), judge=judge, follows_upstream=False),
    roles=Roles(
        where={
            "alicloud:cs/managedKubernetes:ManagedKubernetes": "on ACK, pods take RAM roles (RRSA)",
            "alicloud:ecs/instance:Instance": "machines of ECS have RAM roles",
        },
        keys=frozenset({"alicloud:ram/accessKey:AccessKey"}),
        # Alibaba Cloud's own controller has the names without a prefix.
        names=frozenset(
            f"{prefix}{name}"
            for prefix in ("", "alibabacloud", "alicloud")
            for name in ("accesskey", "accesskeyid", "accesskeysecret", "secretkey")
        ),
    ),
    check_config=check,
    public_apis=public_apis,
    internal=_marks("address_type", "intranet"),
    limited_elsewhere=(
        # An access list is off until it is switched on.
        *_marks("acl_type", "white", beside=("acl_status", "on")),
        *_marks("security_group_ids"),
    ),
    unchecked=(*_marks("health_check_flag", "off"), *_marks("health_check_switch", "off")),
    limits_egress=limits_egress,
    components=COMPONENTS,
    shares=_names("id"),
    check_ports=_names("health_check_connect_port"),
    by_pod=_marks("backend_type", "eni"),
    balancers=BALANCERS,
    zones=ZONES,
    notes=NOTES,
    meaning=MEANING,
)

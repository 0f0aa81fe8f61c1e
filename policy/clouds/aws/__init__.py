"""The rules for AWS, and the meaning of its annotations."""

from __future__ import annotations

from cloud_controller.clouds.aws.annotations import AWS_LBC_CLASS, CATALOGUE
from cloud_controller.clouds.aws.versions import IMAGES, judge
from policy.clouds.aws.audit import CALLS_ARE_AUDITED
from policy.clouds.aws.balancers import BALANCERS, ZONES
from policy.clouds.aws.components import COMPONENTS
from policy.clouds.aws.config import check, public_apis
from policy.clouds.aws.egress import limits_egress
from policy.clouds.aws.iam import POLICIES_WITHOUT_WILDCARDS
from policy.clouds.aws.infrastructure import INFRASTRUCTURE
from policy.clouds.aws.meaning import MEANING
from policy.clouds.aws.metadata import CCM_REACHES_METADATA
from policy.clouds.aws.subnets import SUBNETS_HAVE_ROLES
from policy.clouds.aws.trust import ROLES_LIMIT_TRUST
from policy.clouds.interface import CcmMatrix, Mark, PolicyCloud, Roles, Signs


def _of(argument: str) -> str:
    return CATALOGUE.by_argument[argument].name


NOTES = {
    "lb-service-log-access": (
        "classic load balancers, and network load balancers with a TLS listener (no other is logged)."
    ),
    "lb-service-protect-from-deletion": (
        "network load balancers of this project's controller or of the AWS Load Balancer Controller; AWS's own "
        "CCM reads no such annotation, and classic load balancers have no protection."
    ),
    "lb-service-encrypt-https": "`ssl-cert`, and `ssl-ports` includes the port.",
    "lb-service-serve-node-zones": "`subnets`; across zones only with `cross-zone-load-balancing-enabled`.",
    "lb-service-limit-sources": (
        "`internal`, `scheme`; the class `service.k8s.aws/nlb` is internal by its own controller's default "
        "(setting `internalClasses`)."
    ),
    "ccm-avoid-access-key": (
        "EKS clusters, launch templates and EC2 instances take IAM roles; a key is `aws:iam/accessKey:AccessKey`, and "
        "the variables are `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, also in a file of credentials. On EKS, "
        "make an IAM role for the ServiceAccount, as components/clouds/aws/iam.py does "
        "([IRSA](https://docs.aws.amazon.com/eks/latest/userguide/iam-roles-for-service-accounts.html)). Not seen: "
        "`~/.aws/credentials` on a machine."
    ),
    "ccm-credential-set-expiry": "90 days are control 1.14 of the CIS benchmark.",
    "ccm-cloud-config-valid": "the parser also knows the file of AWS's own controller.",
    "ccm-use-internal-endpoints": (
        "a stack with a VPC makes interface endpoints, with private DNS, for `ec2`, `elasticloadbalancing` and `sts`, "
        "or the cloud config has a `ServiceOverride` for each ([interface endpoints]"
        "(https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html))."
    ),
    "ccm-workload-fit-kubernetes": (
        "the image is `…/provider-aws/cloud-controller-manager`; it has the cluster's minor version. An EKS cluster "
        "shows its version."
    ),
    "node-follow-control-plane-version": "the version of EKS's node groups.",
    "cluster-version-stay-supported": "EKS's calendar of standard support.",
    "cluster-version-avoid-vulnerabilities": "EKS's versions, minor ones such as `1.36`, are not judged.",
    "ccm-version-acknowledge-changes": "the CCM of an EKS cluster, which the cloud runs, is not judged.",
    "cluster-ranges-avoid-overlap": (
        "the range of Services is an EKS cluster's `serviceIpv4Cidr`; pods of EKS have addresses of the network."
    ),
    "cluster-cidr-cover-nodes": (
        "[quotas of a VPC](https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html)."
    ),
}

CLOUD = PolicyCloud(
    name="aws",
    signs=Signs(
        types=("aws:", "aws-native:", "eks:"),
        called="aws",
        managed=("aws:eks/cluster:Cluster", "aws-native:eks:Cluster", "eks:index:Cluster"),
        other_classes=(AWS_LBC_CLASS, "eks.amazonaws.com/nlb"),
    ),
    catalogue=CATALOGUE,
    policies=(
        POLICIES_WITHOUT_WILDCARDS,
        ROLES_LIMIT_TRUST,
        SUBNETS_HAVE_ROLES,
        CCM_REACHES_METADATA,
        CALLS_ARE_AUDITED,
    ),
    infrastructure=INFRASTRUCTURE,
    ccm=CcmMatrix(image=IMAGES, providers=frozenset({"aws"}), judge=judge),
    roles=Roles(
        where={
            "aws:eks/cluster:Cluster": "on EKS, pods take IAM roles (IRSA)",
            "aws:ec2/launchTemplate:LaunchTemplate": "machines of EC2 have IAM roles (instance profiles)",
            "aws:ec2/instance:Instance": "machines of EC2 have IAM roles (instance profiles)",
        },
        keys=frozenset({"aws:iam/accessKey:AccessKey"}),
        names=frozenset({"awsaccesskeyid", "awssecretaccesskey"}),
    ),
    check_config=check,
    public_apis=public_apis,
    internal=(Mark(_of("internal")), Mark(_of("scheme"), ("internal",))),
    limited_elsewhere=(Mark(_of("security_groups")),),
    further_clients=(Mark(_of("security_group_prefix_lists")),),
    limits_egress=limits_egress,
    components=COMPONENTS,
    check_ports=(_of("healthcheck_port"),),
    by_pod=(Mark(_of("nlb_target_type"), ("ip",)),),
    balancers=BALANCERS,
    zones=ZONES,
    notes=NOTES,
    meaning=MEANING,
)

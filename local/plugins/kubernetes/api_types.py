"""The Kubernetes type of a resource's type token, and whether its objects are namespaced."""

from __future__ import annotations

from dataclasses import dataclass

from local.plugins.urn import type_of

_PREFIX = "kubernetes:"

# The built-in kinds without a namespace; for other groups the API server's discovery decides.
_CLUSTER_SCOPED = frozenset(
    {
        "APIService",
        "CSIDriver",
        "CSINode",
        "CertificateSigningRequest",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterTrustBundle",
        "ComponentStatus",
        "CustomResourceDefinition",
        "DeviceClass",
        "FlowSchema",
        "IPAddress",
        "IngressClass",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "ResourceSlice",
        "RuntimeClass",
        "SelfSubjectReview",
        "ServiceCIDR",
        "StorageClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
        "VolumeAttributesClass",
    }
)
_BUILT_IN_GROUPS = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)
# Groups of the Kubernetes package that are not API types.
_NOT_OF_THE_API = {
    "helm.sh": "Helm releases and charts",
    "kustomize": "Kustomize folders",
    "yaml": "YAML components",
    "pulumi.com": "Pulumi's own Kubernetes helpers",
}


class UnsupportedTypeError(Exception):
    """The type token is not a Kubernetes API type that this provider supports; the message names it."""


@dataclass(frozen=True, slots=True)
class ApiType:
    """A Kubernetes type; `group` is empty for the core group."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """An object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def namespaced(self) -> bool | None:
        """Whether its objects are namespaced; None: only the API server knows."""
        if self.group in _BUILT_IN_GROUPS:
            return self.kind not in _CLUSTER_SCOPED
        return None


def parse_type(token: str) -> ApiType:
    """The type of `kubernetes:apps/v1:Deployment` (the core group is `core`). Raises UnsupportedTypeError."""
    module, separator, kind = token.removeprefix(_PREFIX).rpartition(":")
    group, slash, version = module.partition("/")
    if not token.startswith(_PREFIX) or not separator or not kind:
        raise UnsupportedTypeError(f"{token} is not a Kubernetes type (kubernetes:GROUP/VERSION:Kind)")
    for prefix, what in _NOT_OF_THE_API.items():
        if group == prefix:
            raise UnsupportedTypeError(f"{token}: this provider does not support {what}; use Pulumi's own")
    if not slash:
        raise UnsupportedTypeError(f"{token} is not a Kubernetes type (kubernetes:GROUP/VERSION:Kind)")
    if kind.endswith("Patch") and group.removeprefix("core") in _BUILT_IN_GROUPS:
        raise UnsupportedTypeError(f"{token}: this provider does not support patches; use Pulumi's own")
    if kind.endswith("List") and kind != "List" and group.removeprefix("core") in _BUILT_IN_GROUPS:
        raise UnsupportedTypeError(f"{token}: a list is not a resource; declare each object by itself")
    return ApiType("" if group == "core" else group, version, kind)


def type_of_urn(urn: str) -> ApiType:
    """The type of the resource with this URN."""
    return parse_type(type_of(urn))

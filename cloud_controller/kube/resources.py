"""The vocabulary of the Kubernetes API: resources and paths, objects and keys, patch types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object as JSON."""


class PatchType(StrEnum):
    """The media type of a patch."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class EventType(StrEnum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch. A bookmark's object has only a resource version."""

    type: EventType
    object: Object


@dataclass(frozen=True, slots=True)
class ObjectList:
    """All items of a list, and the resource version from which to watch."""

    items: list[Object]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object in the API; `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection (in one namespace or all), of an object, or of a subresource."""
        if namespace and not self.namespaced:
            raise ValueError(f"{self.plural} are cluster-scoped; namespace {namespace!r} is not allowed")
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.plural}/{name}: a namespace is required")
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True)
EVENTS = Resource("", "v1", "events", "Event", True)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False)
NODES = Resource("", "v1", "nodes", "Node", False)
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False)
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True)
PODS = Resource("", "v1", "pods", "Pod", True)
SECRETS = Resource("", "v1", "secrets", "Secret", True)
SERVICES = Resource("", "v1", "services", "Service", True)
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", True)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True)
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", True)
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True)
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False)
SUBJECT_ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False)
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)
CLUSTER_ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", True)
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True)
CSI_DRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", False)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False)
VOLUME_ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False)


def name(obj: Object) -> str:
    """The object's name."""
    return str(obj["metadata"]["name"])


def namespace(obj: Object) -> str | None:
    """The object's namespace; None if it is cluster-scoped."""
    value = obj["metadata"].get("namespace")
    return None if value is None else str(value)


def key(obj: Object) -> str:
    """`NAMESPACE/NAME`, or `NAME` for a cluster-scoped object."""
    space = namespace(obj)
    return f"{space}/{name(obj)}" if space else name(obj)


def uid(obj: Object) -> str:
    """The object's UID; empty if no API server has stored it yet."""
    return str(obj["metadata"].get("uid", ""))

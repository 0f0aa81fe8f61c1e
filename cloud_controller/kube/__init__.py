"""The project's Kubernetes client: plain JSON objects, blocking calls, thread-safe.

Used by the controllers, the local cloud's machines, the engine's Kubernetes provider and the tests:

    kube = Kube.from_file(Path("admin.kubeconfig"))
    for node in kube.list(NODES).items:
        kube.patch(NODES, name(node), {"metadata": {"labels": {"seen": "true"}}}, type=PatchType.MERGE)

HTTP proxies and unverified TLS are not supported; a kubeconfig that requires one is an error.
"""

from cloud_controller.kube.api import KubeApi, ObjectCache
from cloud_controller.kube.client import Kube
from cloud_controller.kube.config import SERVICE_ACCOUNT_DIR, KubeconfigError
from cloud_controller.kube.informer import Handler, Informer
from cloud_controller.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CSI_DRIVERS,
    CSI_NODES,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STORAGE_CLASSES,
    SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    VOLUME_ATTACHMENTS,
    EventType,
    Object,
    ObjectList,
    PatchType,
    Resource,
    WatchEvent,
    key,
    name,
    namespace,
    uid,
)
from cloud_controller.kube.watch import Watch
from cloud_controller.kube_errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)

__all__ = [
    "CLUSTER_ROLES",
    "CLUSTER_ROLE_BINDINGS",
    "CONFIG_MAPS",
    "CSI_DRIVERS",
    "CSI_NODES",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "ENDPOINT_SLICES",
    "EVENTS",
    "LEASES",
    "NAMESPACES",
    "NODES",
    "PERSISTENT_VOLUMES",
    "PERSISTENT_VOLUME_CLAIMS",
    "PODS",
    "ROLES",
    "ROLE_BINDINGS",
    "SECRETS",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "SERVICE_ACCOUNT_DIR",
    "STORAGE_CLASSES",
    "SUBJECT_ACCESS_REVIEWS",
    "TOKEN_REVIEWS",
    "VOLUME_ATTACHMENTS",
    "AlreadyExistsError",
    "ApiError",
    "ConflictError",
    "EventType",
    "ForbiddenError",
    "GoneError",
    "Handler",
    "Informer",
    "InvalidError",
    "Kube",
    "KubeApi",
    "KubeconfigError",
    "NotFoundError",
    "Object",
    "ObjectCache",
    "ObjectList",
    "PatchType",
    "Resource",
    "TooManyRequestsError",
    "UnauthorizedError",
    "UnreachableError",
    "Watch",
    "WatchEvent",
    "key",
    "name",
    "namespace",
    "uid",
]

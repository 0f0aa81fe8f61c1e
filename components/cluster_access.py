"""How a dynamic provider reaches a cluster and its cloud: by the stack's config, never by an input.

Import-light, because every dynamic provider imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloud_controller.cloud import Cloud
    from cloud_controller.kube import Kube

_ACCESS = {"aws": ".clouds.aws.access", "mycloud": ".clouds.mycloud.access"}
"""The module of each cloud that has `cloud_config(request config, cluster id, network id)`, and perhaps
`kubeconfig(request config, cluster id)`, for clusters that the cloud itself gives no access to (else it is None)."""

CLOUDS = tuple(sorted(_ACCESS))


def cloud_config(config: Any, props: Mapping[str, Any]) -> str:
    """The cloud config of the cluster that a resource's properties name."""
    module: Any = import_module(_ACCESS[props["cloud"]], __package__)
    return str(module.cloud_config(config, props["cluster_id"], props["network_id"]))


def own_kubeconfig(config: Any, props: Mapping[str, Any]) -> str | None:
    """The kubeconfig of a cluster that its cloud gives no access to; None: the cloud does. Raises `CloudError`."""
    module: Any = import_module(_ACCESS[props["cloud"]], __package__)
    if not hasattr(module, "kubeconfig"):
        return None
    found = module.kubeconfig(config, props["cluster_id"])
    return None if found is None else str(found)


def open_cloud(config: Any, props: Mapping[str, Any]) -> Cloud:
    """The cluster's cloud."""
    from cloud_controller import clouds

    return clouds.load(props["cloud"], cloud_config(config, props))


def open_kube(config: Any, props: Mapping[str, Any], cloud: Cloud) -> Kube:
    """The cluster's API server, not asked yet. Raises `CloudError`: NotFound for a cluster that is gone."""
    from cloud_controller.kube import Kube

    return Kube.from_kubeconfig(own_kubeconfig(config, props) or cloud.cluster_access())

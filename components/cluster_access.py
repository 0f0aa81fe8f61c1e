"""How a dynamic provider reaches a cluster and its cloud: by the stack's config, never by an input.

Import-light, because every dynamic provider imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloud_controller.cloud import InvalidConfiguration

from . import clouds
from .placeholder import PLACEHOLDER, PlaceholderSecrets

if TYPE_CHECKING:
    from cloud_controller.cloud import Cloud
    from cloud_controller.kube import Kube


def cloud_config(config: Any, props: Mapping[str, Any]) -> str:
    """The cloud config of the cluster that a resource's properties name."""
    return clouds.descriptor(props["cloud"]).cloud_config(config, props["cluster_id"], props["network_id"])


def own_kubeconfig(config: Any, props: Mapping[str, Any]) -> str | None:
    """The kubeconfig of a cluster that its cloud gives no access to; None: the cloud does.

    Of an existing cluster the stack's config has it. Raises `CloudError`, and PlaceholderSecrets for a placeholder.
    """
    if props.get("existing"):
        kubeconfig = config.get("kubeconfig")
        if not kubeconfig:
            raise InvalidConfiguration("kubeconfig", "the stack's config has none", "the existing cluster's kubeconfig")
        if kubeconfig == PLACEHOLDER:
            raise PlaceholderSecrets("kubeconfig is a placeholder: this run does not have the stack's secrets")
        return str(kubeconfig)
    return clouds.descriptor(props["cloud"]).kubeconfig(config, props["cluster_id"])


def open_cloud(config: Any, props: Mapping[str, Any]) -> Cloud:
    """The cluster's cloud."""
    from cloud_controller import clouds as controllers

    return controllers.load(props["cloud"], cloud_config(config, props))


def open_kube(config: Any, props: Mapping[str, Any], cloud: Cloud) -> Kube:
    """A client of the cluster's API server, not connected yet. Raises `CloudError`: NotFound if it is gone."""
    from cloud_controller.kube import Kube

    return Kube.from_kubeconfig(own_kubeconfig(config, props) or cloud.cluster_access())

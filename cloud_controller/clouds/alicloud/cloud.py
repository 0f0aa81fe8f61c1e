"""Alibaba Cloud as a cloud of the controllers: config in, the parts of the cloud interface out."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Sequence

from cloud_controller.cloud import CallObserver, CloudError, Fence, NotFound, Quota
from cloud_controller.clouds.alicloud.annotations import CLASSES, OWN_CLASSES
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.alicloud.config import Config
from cloud_controller.clouds.alicloud.credentials import of_config
from cloud_controller.clouds.alicloud.endpoints import endpoint
from cloud_controller.clouds.alicloud.instances import EcsInstances
from cloud_controller.clouds.alicloud.load_balancer import AliCloudLoadBalancers
from cloud_controller.clouds.alicloud.names import ACK_TAG, PROVIDER_NAME
from cloud_controller.clouds.alicloud.quotas import quotas
from cloud_controller.clouds.alicloud.routes import VpcRoutes
from cloud_controller.clouds.alicloud.tags import tags_of
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.load_balancers.model import CLUSTER_TAG

_log = logging.getLogger(__name__)


class AliCloud:
    """One cluster of one account, in one region."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._client = Client(
            config.region, lambda product: endpoint(config, product), of_config(config, os.environ, self._observe)
        )
        self._concurrently = ConcurrentCalls()
        self._cache = Cache()
        self._instances = EcsInstances(self._client, config, self._cache)
        self._load_balancers = AliCloudLoadBalancers(self._client, config, self._cache)
        self._routes = VpcRoutes(self._client, config, self._instances, self._concurrently)

    def __repr__(self) -> str:
        return f"AliCloud(cluster_id={self.cluster_id!r}, region={self._config.region!r})"

    @property
    def provider_name(self) -> str:
        """The scheme of provider IDs in their form as a URI."""
        return PROVIDER_NAME

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, which every tag carries."""
        return self._config.cluster_id

    @property
    def load_balancer_classes(self) -> frozenset[str]:
        """The classes that this cloud claims, besides none set."""
        return CLASSES if self._config.serve_nlb_class else OWN_CLASSES

    @property
    def instances(self) -> EcsInstances:
        """The cluster's machines."""
        return self._instances

    @property
    def routes(self) -> VpcRoutes:
        """The route tables of the cluster's network."""
        return self._routes

    @property
    def load_balancers(self) -> AliCloudLoadBalancers:
        """Classic and network load balancers."""
        return self._load_balancers

    @property
    def volumes(self) -> None:
        """None: volumes are Alibaba Cloud's own CSI driver's."""
        return

    def check_access(self, controllers: Collection[str], *, read_only: bool = False) -> None:  # noqa: ARG002
        """See `Cloud.check_access`: raise unless the access key is valid, which one call without permissions tells.

        Permissions are not checked, because reading them needs a permission of its own; a refused action names itself
        in its error.
        """
        who = self._client.call("sts", "GetCallerIdentity", {})
        _log.info("Alibaba Cloud accepted the access key arn=%s region=%s", who.get("Arn", "?"), self._config.region)

    def quotas(self, controllers: Collection[str]) -> Sequence[Callable[[], Sequence[Quota]]]:
        """See `Quotas`: those of classic and network load balancers."""
        return quotas(self._client, self._config.region, controllers)

    def observe_calls(self, observer: CallObserver) -> None:
        """See `Cloud.observe_calls`."""
        self._client.observer = observer

    def _observe(self, operation: str, seconds: float, error: CloudError | None) -> None:
        if (observer := self._client.observer) is not None:
            observer(operation, seconds, error)

    def fence_writes(self, fence: Fence) -> None:
        """See `Cloud.fence_writes`."""
        self._client.fence = fence

    def cluster_access(self) -> str:
        """Raises NotFound: kubeconfigs of ACK's clusters are not offered."""
        raise NotFound("Alibaba Cloud: the cloud config does not give access to the cluster")

    def has_cluster(self) -> None:
        """See `TellsClusters`. None: what ACK does not have may run on machines of its own, or only have left ACK."""
        return

    def cluster_ids(self) -> Collection[str]:
        """See `TellsClusters`."""
        found = [
            *self._client.pages("ecs", "DescribeInstances", {"MaxResults": 100}, "Instances.Instance"),
            *self._client.pages("slb", "DescribeLoadBalancers", {"PageNumber": 1}, "LoadBalancers.LoadBalancer"),
            *self._client.pages("nlb", "ListLoadBalancers", {"MaxResults": 100}, "LoadBalancers"),
        ]
        # NLB's are a list, the others' a list in an object.
        shown = (each.get("Tags") or [] for each in found)
        tags = [tags_of(each["Tag"] if isinstance(each, dict) else each) for each in shown]
        return {of for each in tags for key in (CLUSTER_TAG, ACK_TAG) if (of := each.get(key))}

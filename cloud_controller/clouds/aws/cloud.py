"""AWS as a cloud of the controllers: config in, the parts of the cloud interface out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache

from cloud_controller.cloud import CallObserver, CcmPods, DryRun, Fence, Quota
from cloud_controller.clouds.aws import access
from cloud_controller.clouds.aws.caller import other_than_ccm
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.config_refusals import served_classes
from cloud_controller.clouds.aws.dry_run import dry_run
from cloud_controller.clouds.aws.instances import AwsInstances
from cloud_controller.clouds.aws.load_balancer import AwsLoadBalancers
from cloud_controller.clouds.aws.provider_ids import PROVIDER_NAME
from cloud_controller.clouds.aws.quotas import quotas
from cloud_controller.clouds.aws.routes import AwsRoutes
from cloud_controller.clouds.aws.vpc_state import VpcState, found_vpc
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls


class Aws:
    """One cluster of one account, in one region."""

    def __init__(self, config: Config) -> None:
        self._api = Api(config)
        self._concurrently = ConcurrentCalls()
        self._cache = Cache()
        self._vpc_state = VpcState(self._api, config.cluster_tag, config.vpc_id, self._cache)
        vpc_id = cache(lambda: config.vpc_id or found_vpc(self._api, config.cluster_tag))
        self._instances = AwsInstances(self._api, vpc_id, self._cache)
        self._routes = AwsRoutes(self._api, self._instances, self._concurrently)
        self._load_balancers = AwsLoadBalancers(self._api, config, self._vpc_state, self._cache, self._concurrently)

    def __repr__(self) -> str:
        return f"Aws(cluster_id={self.cluster_id!r}, region={self._api.config.region!r})"

    @property
    def provider_name(self) -> str:
        """The scheme of provider IDs."""
        return PROVIDER_NAME

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, which is in the key of its tag."""
        return self._api.config.cluster_id

    @property
    def load_balancer_classes(self) -> frozenset[str]:
        """The classes that this cloud claims, besides none set."""
        return served_classes(self._api.config)

    @property
    def instances(self) -> AwsInstances:
        """The cluster's machines."""
        return self._instances

    @property
    def routes(self) -> AwsRoutes:
        """The route table of the pods' network."""
        return self._routes

    @property
    def load_balancers(self) -> AwsLoadBalancers:
        """The cluster's load balancers, network and classic ones."""
        return self._load_balancers

    @property
    def volumes(self) -> None:
        """None: volumes are the EBS CSI driver's, which is AWS's own."""
        return

    def check_access(self, controllers: Collection[str], *, read_only: bool = False) -> None:  # noqa: ARG002
        """See `Cloud.check_access`; rights are told where they lack (see `access.check`)."""
        access.check(self._api)

    def dry_run(self, controllers: Collection[str], pods: CcmPods | None) -> DryRun:
        """See `DryRuns`: of changes in EC2 alone."""
        if other := other_than_ccm(self._api, pods):
            return DryRun(unknown=[f"no change could be tried: {other}"])
        return dry_run(self._api, self._vpc_state, self._instances, self._routes, controllers)

    def quotas(self, controllers: Collection[str]) -> Sequence[Callable[[], Sequence[Quota]]]:
        """See `Quotas`: those of classic and network load balancers, and of target groups."""
        return quotas(self._api, controllers)

    def observe_calls(self, observer: CallObserver) -> None:
        """See `Cloud.observe_calls`."""
        self._api.observer = observer

    def fence_writes(self, fence: Fence) -> None:
        """See `Cloud.fence_writes`."""
        self._api.fence = fence

    def cluster_access(self) -> str:
        """A kubeconfig of the EKS cluster, valid for 15 minutes; raises NotFound for a cluster of one's own."""
        return access.kubeconfig(self._api)

    def has_cluster(self) -> bool | None:
        """See `TellsClusters`."""
        return access.has_cluster(self._api)

    def cluster_ids(self) -> Collection[str]:
        """See `TellsClusters`."""
        return access.cluster_ids(self._api)

"""mycloud as a cloud of the controllers: config in, the parts of the cloud interface out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from cloud_controller.cloud import CallObserver, Fence, NotFound, Quota
from cloud_controller.clouds.mycloud import access
from cloud_controller.clouds.mycloud.annotations import CLASSES
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.clouds.mycloud.config import Config, read_token
from cloud_controller.clouds.mycloud.instances import MyCloudInstances
from cloud_controller.clouds.mycloud.load_balancer import MyCloudLoadBalancers
from cloud_controller.clouds.mycloud.names import PROVIDER_NAME
from cloud_controller.clouds.mycloud.routes import MyCloudRoutes
from cloud_controller.clouds.mycloud.scope import Scope
from cloud_controller.clouds.mycloud.volumes import MyCloudVolumes
from cloud_controller.load_balancers.model import CLUSTER_TAG

_CALL_DEADLINE = 20.0
"""Seconds that one call may take with its retries: a controller has other objects to see to."""
_CREDENTIALS_TTL = 3600


class MyCloud:
    """One cluster of one account of mycloud."""

    def __init__(self, config: Config) -> None:
        token_file = config.token_file
        refresh = None if token_file is None else partial(read_token, token_file)
        self._client = Client(config.endpoint, config.token, deadline=_CALL_DEADLINE, refresh_token=refresh)
        self._scope = Scope(self._client, config.cluster_id, config.network_id)
        self._instances = MyCloudInstances(self._client, self._scope)
        self._routes = MyCloudRoutes(self._client, self._scope)
        self._load_balancers = MyCloudLoadBalancers(self._client, self._scope, config.scheme)
        self._volumes = MyCloudVolumes(self._client, self._scope)

    def __repr__(self) -> str:
        return f"MyCloud({self._client.endpoint!r}, cluster_id={self.cluster_id!r})"

    @property
    def provider_name(self) -> str:
        """The scheme of provider IDs."""
        return PROVIDER_NAME

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, which every tag carries."""
        return self._scope.cluster_id

    @property
    def load_balancer_classes(self) -> frozenset[str]:
        """The classes that this cloud claims, besides none set."""
        return frozenset(CLASSES)

    @property
    def instances(self) -> MyCloudInstances:
        """The cluster's machines."""
        return self._instances

    @property
    def routes(self) -> MyCloudRoutes:
        """The route table of the cluster's network."""
        return self._routes

    @property
    def load_balancers(self) -> MyCloudLoadBalancers:
        """The cluster's load balancers."""
        return self._load_balancers

    @property
    def volumes(self) -> MyCloudVolumes:
        """The cluster's volumes."""
        return self._volumes

    def check_access(self, controllers: Collection[str], *, read_only: bool = False) -> None:
        """See `Cloud.check_access`. Raises InvalidConfiguration for an unknown cluster."""
        access.check(self._client, self._scope, controllers, read_only=read_only)

    def lacking_rights(self, controllers: Collection[str]) -> Sequence[str]:
        """See `TellsRights`."""
        return access.lacking(self._client, self._scope, controllers)

    def quotas(self, controllers: Collection[str]) -> Sequence[Callable[[], Sequence[Quota]]]:
        """The quotas of load balancers and volumes, which count those of the whole account."""
        collections = {"service": ("load_balancers", "load balancers"), "volume": ("volumes", "volumes")}
        counted = [collections[each] for each in controllers if each in collections]

        def read() -> Sequence[Quota]:
            limits = self._client.get_path("quotas")["quotas"]
            return [Quota(of, len(self._client.list(name)), int(limits[name])) for name, of in counted]

        return [read] if counted else []

    def observe_calls(self, observer: CallObserver) -> None:
        """See `Cloud.observe_calls`."""
        self._client.observer = observer

    def fence_writes(self, fence: Fence) -> None:
        """See `Cloud.fence_writes`."""
        self._client.fence = fence

    def cluster_access(self) -> str:
        """A kubeconfig for the cluster, valid for an hour."""
        answer = self._client.post(
            f"clusters/{self.cluster_id}/credentials", {"ttl_seconds": _CREDENTIALS_TTL}, idempotent=True
        )
        return str(answer["kubeconfig"])

    def has_cluster(self) -> bool:
        """See `TellsClusters`: every cluster of mycloud is mycloud's."""
        try:
            self._client.get("clusters", self.cluster_id)
        except NotFound:
            return False
        return True

    def cluster_ids(self) -> Collection[str]:
        """See `TellsClusters`."""
        found = (each for kind in ("machines", "load_balancers", "volumes") for each in self._client.list(kind))
        return {of for each in found if (of := each["tags"].get(CLUSTER_TAG))}

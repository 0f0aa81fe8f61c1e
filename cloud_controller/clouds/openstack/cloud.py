"""OpenStack as a cloud of the controllers: config in, the parts of the cloud interface out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from cloud_controller.cloud import CallObserver, Fence, NotFound, Quota
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.http import Http
from cloud_controller.clouds.openstack import access
from cloud_controller.clouds.openstack.client import OpenStackClient
from cloud_controller.clouds.openstack.config import Config
from cloud_controller.clouds.openstack.instances import NovaInstances
from cloud_controller.clouds.openstack.names import PROVIDER_NAME
from cloud_controller.clouds.openstack.octavia.load_balancers import OctaviaLoadBalancers
from cloud_controller.clouds.openstack.octavia.options import LoadBalancerOptions
from cloud_controller.clouds.openstack.octavia.wire import OCTAVIA, tags_of
from cloud_controller.clouds.openstack.quotas import quotas
from cloud_controller.clouds.openstack.routes import RouterRoutes
from cloud_controller.clouds.openstack.session import Session
from cloud_controller.load_balancers.model import CLUSTER_TAG

_TIMEOUT = 15.0


class OpenStack:
    """One cluster in one project and region."""

    def __init__(self, config: Config, *, regional: bool = False, timeout: float = _TIMEOUT) -> None:
        """`regional`: write provider IDs with the region. `timeout`: seconds that a request may take."""
        self._config = config
        self._client = connect(config, timeout)
        cache = Cache()
        self._instances = NovaInstances(self._client, config.networking, regional=regional, cache=cache)
        self._routes = (
            None if config.router_id is None else RouterRoutes(self._client, config.router_id, self._instances)
        )
        options = config.load_balancers or LoadBalancerOptions()
        self._load_balancers = OctaviaLoadBalancers(self._client, config.cluster_id, options, cache)

    def __repr__(self) -> str:
        return f"OpenStack({self._config.auth_url!r}, cluster_id={self.cluster_id!r})"

    @property
    def provider_name(self) -> str:
        """The scheme of provider IDs."""
        return PROVIDER_NAME

    @property
    def cluster_id(self) -> str:
        """The ID of the cluster, which every tag carries."""
        return self._config.cluster_id

    @property
    def load_balancer_classes(self) -> frozenset[str]:
        """None: upstream serves Services without a class."""
        return frozenset()

    @property
    def instances(self) -> NovaInstances:
        """The project's servers."""
        return self._instances

    @property
    def routes(self) -> RouterRoutes | None:
        """The routes of the router in the cloud config, if it names one."""
        return self._routes

    @property
    def load_balancers(self) -> OctaviaLoadBalancers | None:
        """The cluster's load balancers; None if the cloud config turns them off."""
        return self._load_balancers if self._config.load_balancers is not None else None

    @property
    def volumes(self) -> None:
        """None: Cinder's volumes are its CSI driver's."""
        return None

    def check_access(self, controllers: Collection[str], *, read_only: bool = False) -> None:
        """See `Cloud.check_access`."""
        del read_only
        access.check(self._client, controllers, self._config.router_id)

    def quotas(self, controllers: Collection[str]) -> Sequence[Callable[[], Sequence[Quota]]]:
        """See `Quotas`: those of load balancers, floating IPs and security groups."""
        options = self._config.load_balancers
        return [] if options is None else quotas(self._client, controllers, groups=options.manage_security_groups)

    def observe_calls(self, observer: CallObserver) -> None:
        """See `Cloud.observe_calls`."""
        self._client.observer = observer

    def fence_writes(self, fence: Fence) -> None:
        """See `Cloud.fence_writes`."""
        self._client.fence = fence

    def cluster_access(self) -> str:
        """See `Cloud.cluster_access`."""
        raise NotFound("OpenStack does not run the control plane; pass --kubeconfig")

    def has_cluster(self) -> None:
        """See `TellsClusters`. None: OpenStack runs no control planes."""
        return

    def cluster_ids(self) -> Collection[str]:
        """See `TellsClusters`: those of load balancers, since servers carry none."""
        if self._config.load_balancers is None:
            return ()
        found = self._client.list(OCTAVIA, "lbaas/loadbalancers", "loadbalancers")
        return {of for each in found if (of := tags_of(each).get(CLUSTER_TAG))}


def connect(config: Config, timeout: float = _TIMEOUT) -> OpenStackClient:
    """A client with the credentials of a cloud config, which calls nothing yet. `timeout`: seconds of a request."""
    http = Http("OpenStack", timeout=timeout, ca_file=config.ca_file)
    session = Session(http, config.auth_url, config.credentials, region=config.region, interface=config.interface)
    return OpenStackClient(session, http)

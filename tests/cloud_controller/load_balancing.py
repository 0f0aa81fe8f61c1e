"""Everything a load balancer test needs on any cloud: factories of Services, and a service controller to drive.

    running = served(account, cluster, service(named(scheme="internal"), port(443)))

    changed(cluster, named(scheme="internet-facing"))
    running.settle()

    assert running.calls.writes == {...}

`account` is a cloud's fixture (an `Account`), `named` makes annotations from its catalogue. See docs/testing.md.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast
from unittest.mock import patch

from cloud_controller.binding import UNBOUND, Binding
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.service import controller as service_controller
from cloud_controller.controllers.service.checkpoint import Checkpoint
from cloud_controller.controllers.service.controller import (
    NODES_CHANGED,
    POLL,
    RESYNC,
    ServiceController,
    ServiceOptions,
)
from cloud_controller.kube import LEASES, EventType, Object, key
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.load_balancers.operations import LoadBalancers, Operation
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Action, Plan
from tests.cloud_controller.calls import Calls
from tests.cloud_controller.cluster import WEB, Cluster, Copies
from tests.cloud_controller.guard import guard, lease_that_confirms


class Account(Protocol):
    """A simulated cloud. Each cloud's fixture implements it."""

    def new_cloud(self, **config: Any) -> Any:
        """The cloud as a new process sees it; `config` overrides fields of the cluster's cloud config."""

    def settle(self) -> None:
        """Finish the operations that the cloud has accepted."""


# ---------------------------------------------------------------------------------------------------------- factories


def service(
    annotations: dict[str, str] | None = None,
    *ports: dict[str, Any],
    name: str = "web",
    namespace: str = "default",
    uid: str | None = None,
    finalizers: Sequence[str] = (),
    deleted: bool = False,
    **spec: Any,
) -> Object:
    """A Service that asks for a load balancer; without ports, for port 80."""
    metadata = {"namespace": namespace, "name": name, "uid": uid or f"uid-{name}", "finalizers": [*finalizers]}
    deletion = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
    return {
        "metadata": {**metadata, **deletion, "annotations": {**(annotations or {})}},
        "spec": {"type": "LoadBalancer", "ports": [*ports] or [port()], **spec},
        "status": {},
    }


def port(number: int = 80, protocol: str = "TCP", **more: Any) -> dict[str, Any]:
    """A port of a Service; its node port ends in the same digits: 30080 for 80, 30443 for 443 and 8443."""
    return {"protocol": protocol, "port": number, "nodePort": 30000 + number % 1000, **more}


def endpoint(address: str, node: str, *, pod_of: str | None = "default") -> Object:
    """A ready endpoint, as the endpoint slice controller writes it; without `pod_of`, one that is not a pod."""
    found: Object = {"addresses": [address], "conditions": {"ready": True}, "nodeName": node}
    return found | ({"targetRef": {"kind": "Pod", "namespace": pod_of, "name": "web-0"}} if pod_of else {})


def endpoint_slice(*endpoints: Object, name: str = "web-1", of: str = "web") -> Object:
    """An EndpointSlice of a Service whose pods listen on port 8000."""
    return {
        "metadata": {"namespace": "default", "name": name, "labels": {"kubernetes.io/service-name": of}},
        "addressType": "IPv4",
        "ports": [{"name": "", "protocol": "TCP", "port": 8000}],
        "endpoints": [*endpoints],
    }


def changed(cluster: Cluster, annotations: dict[str, str] | None = None, web: str = WEB, **spec: Any) -> None:
    """Add annotations to a Service and set fields of its spec."""
    service = cluster.service(web)
    service["metadata"]["annotations"] |= annotations or {}
    service["spec"] |= spec


def performed(
    load_balancers: LoadBalancers, *operations: Operation, on: ObservedLoadBalancer | None = None
) -> ObservedLoadBalancer | None:
    """Perform one change, and return the load balancer if it was created. Raises the first error."""
    results = load_balancers.perform(on, operations)
    for result in results:
        if result.error is not None:
            raise result.error
    return results[0].created


# ------------------------------------------------------------------------------------------------------- the controller


class Running:
    """A service controller in a new process, and the calls that the process makes.

    `wrap` may change the cloud first (see AWS's `faulty_aws.py`); `checkpoint` is a client of the API server that has
    the checkpoint of an earlier process. Unless `started`, the first full pass has yet to come.
    """

    def __init__(
        self,
        account: Account,
        cluster: Cluster,
        *,
        wrap: Callable[[Any], None] = lambda _: None,
        checkpoint: Any = None,
        started: bool = True,
        options: ServiceOptions | None = None,
        binding: Binding = UNBOUND,
        **config: Any,
    ) -> None:
        self.account = account
        self.cluster = cluster
        self.calls = Calls()
        self.cloud = account.new_cloud(**config)
        self.cloud.observe_calls(self.calls)
        wrap(self.cloud)
        self.checkpoint = checkpoint and Checkpoint(checkpoint, self.cloud.cluster_id, self.cloud.load_balancers)
        copies: Any = (Copies(cluster.objects[kind]) for kind in ("services", "nodes", "endpointslices"))
        services, nodes, slices = copies
        self.kube = cast("Any", cluster)
        self.controller = ServiceController(
            self.kube,
            self.cloud,
            services,
            nodes,
            slices,
            cluster,
            Metrics(),
            options or ServiceOptions(resync=300.0),
            guard(cluster, binding),
            InstanceSnapshot(self.cloud.instances),
            self.checkpoint,
        )
        for each in slices.items():
            self.take_slice(each)
        self.controller.evidence()
        if started:
            self.resync()

    def handle(self, key: str = WEB) -> None:
        """Handle one key of the queue, as a worker does."""
        self.controller.handle(key)

    def resync(self) -> None:
        """Read all load balancers again."""
        self.handle(RESYNC)

    def take_nodes(self) -> None:
        """Take the changed nodes into account now, without waiting for more."""
        self.controller._debouncer.reset()
        self.handle(NODES_CHANGED)

    def take_slice(self, changed: Object, old: Object | None = None) -> None:
        """Deliver an EndpointSlice that was added or changed."""
        self.controller._endpoints._slice_changed(EventType.MODIFIED if old else EventType.ADDED, old, changed)

    @property
    def held(self) -> Sequence[Action]:
        """The actions that are held."""
        return self.controller._safeguard.held()

    def confirm_all(self) -> None:
        """Confirm every held action, as an administrator does."""
        self.cluster.replace(LEASES, lease_that_confirms(self.controller._safeguard))

    def apply(self, service: Object) -> dict[str, int]:
        """Put the Service and handle it once. Return the calls that changed something; nothing may be left to do."""
        self.cluster.put(service)
        self.calls.clear()
        self.settle(key(service), rounds=1)
        made = dict(self.calls.writes)
        assert not self.plan().changes
        return made

    def plan(self, **options: Any) -> Plan:
        """Read the cloud and plan for all Services."""
        given = ServiceOptions(**options)
        return service_controller.plan(service_controller.observe(self.kube, self.cloud, given), given)

    def observed(self, uid: str = "uid-web") -> list[ObservedLoadBalancer]:
        """Read the load balancers of a Service, complete or not."""
        found: list[ObservedLoadBalancer] = self.cloud.load_balancers.read({uid})
        return [lb for lb in found if lb.owner is not None and lb.owner.uid == uid]

    def settle(self, *keys: str, rounds: int = 4) -> Running:
        """Handle these Services, or all that exist or existed, while the cloud works."""
        for _ in range(rounds):
            for each in keys or sorted({*self.cluster.objects["services"], *self.controller._cache.keys()}):
                self.handle(each)
            self.account.settle()
            self.handle(POLL)
        return self


def planned_without_calls(account: Account, cluster: Cluster, options: ServiceOptions) -> Plan:
    """Observe, and plan from a copy of the observation while no request can be sent."""
    observation = service_controller.observe(cast("Any", cluster), account.new_cloud(), options)
    # A client has locks and sockets, which cannot be pickled.
    copy: service_controller.ServiceObservation = pickle.loads(pickle.dumps(observation))
    with patch("urllib3.HTTPConnectionPool.urlopen", side_effect=AssertionError("a plan called the cloud")):
        plan = service_controller.plan(observation, options)
        assert service_controller.plan(copy, options) == plan
    return plan


def left_out(cluster: Cluster) -> list[str]:
    """What the Service's author has been told about members that its load balancer does without."""
    return [message for reason, message in cluster.events if reason == "MembersLeftOut"]


def served(account: Account, cluster: Cluster, service: Object, **more: Any) -> Running:
    """A controller that has given the Service its load balancer. Its calls are counted from then on."""
    cluster.put(service)
    running = Running(account, cluster, **more).settle()
    assert cluster.service(key(service))["status"], cluster.events
    running.calls.clear()
    return running

"""What the contract suite needs of a cloud: its simulator, and the ways in which its API misbehaves.

A cloud implements `Harness` in `of_NAME.py`; docs/adding-a-cloud.md shows how. The suite itself names no cloud.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from cloud_controller.cloud import Cloud, CloudError
from cloud_controller.clouds.common.error_codes import ErrorCodes
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.model import LoadBalancerModel
from tests.cloud_controller.load_balancing import port, service
from tests.contract.wire import Wire

Snapshot = Mapping[str, object]
"""Everything in an account, by kind and name, without what the cloud chose at random (ids, addresses, times)."""


class Harness(Protocol):
    """A simulated account with one cluster's network. Each test gets a fresh one."""

    @property
    def wire(self) -> Wire:
        """Between every client that `new_cloud` makes and the API. What the harness itself does bypasses it."""
        ...

    @property
    def stride(self) -> int:
        """Of how many writes the tests of interruptions try one by itself: 1, unless the simulator is slow."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of a Service that this harness is about: the kind of load balancer, if there are several."""
        ...

    @property
    def load_balancer_class(self) -> str | None:
        """The class of such a Service, if it selects the kind."""
        ...

    @property
    def has_udp(self) -> bool:
        """Whether such a load balancer can have ports of UDP."""
        ...

    @property
    def changed_annotations(self) -> Mapping[str, str]:
        """Annotations that change such a load balancer in place."""
        ...

    @property
    def replacing_annotations(self) -> Mapping[str, str]:
        """Annotations that only a new load balancer can have."""
        ...

    @property
    def over_the_network(self) -> bool:
        """Whether requests need a connection."""
        ...

    def disconnect(self) -> None:
        """End the connections of all clients: the next request has to connect."""
        ...

    def new_cloud(self) -> Cloud:
        """The cloud as a new process sees it: empty caches, no connections. Pauses between attempts take no time."""
        ...

    def settle(self) -> None:
        """Finish what the cloud has accepted."""
        ...

    def ask(self, cloud: Cloud) -> None:
        """Make a request to which every error code means what it means in general."""
        ...

    def snapshot(self) -> Snapshot:
        """See `Snapshot`."""
        ...

    def node(self, name: str) -> Object:
        """The node of a new running machine of the cluster, with provider ID and address.

        `name`: the machine's, as far as the cloud lets people name machines so; the node's is what its kubelet makes of
        the machine's host name.
        """
        ...

    def twins(self) -> Sequence[Object]:
        """The nodes of two running machines of the cluster whose kubelets would give them one name, as far as the
        cloud lets their machines' names differ."""
        ...

    def terminate(self, node: Object) -> None:
        """End the node's machine, as a user would; the cloud may still list it as terminated."""
        ...

    def put_foreign(self) -> Collection[str]:
        """Create what is not this cluster's and resembles what is; return its keys in the snapshot.

        Objects of another cluster that has the same Service; objects with such names, but without tags; objects with
        a part of the tags.
        """
        ...

    def foreign_nodes(self) -> Sequence[Object]:
        """The nodes of running machines that are not this cluster's: of another cluster, and without tags."""
        ...

    def put_foreign_route(self) -> str:
        """Create a route that is not this cluster's; return its destination. Only for clouds that have routes."""
        ...

    def forwards(self, node: Object, destination: str) -> bool:
        """Whether the node's machine may send and receive packets of this destination. Only for clouds with routes."""
        ...

    def lists_lag(self) -> None:
        """From now on, lists do not show what is created. Reads of single objects by their ID do."""
        ...

    @property
    def describes_unlisted(self) -> bool:
        """Whether machines that lists do not show are described; otherwise asking for one raises Unavailable."""
        ...

    def small_pages(self) -> None:
        """From now on, lists have pages of two."""
        ...

    def full(self) -> None:
        """From now on, the account's quotas are used up."""
        ...

    @property
    def throttled(self) -> str:
        """The cloud's error code for too many requests."""
        ...

    @property
    def denied(self) -> str:
        """The cloud's error code for a lack of permission."""
        ...

    @property
    def error_codes(self) -> Mapping[str, type[CloudError]]:
        """The cloud's error codes, each with the error that a caller must get."""
        ...

    @property
    def error_table(self) -> ErrorCodes:
        """In what the cloud's client looks them up."""
        ...


class VolumeHarness(Harness, Protocol):
    """Of a cloud that has volumes."""

    @property
    def zone(self) -> str:
        """The zone of the nodes."""
        ...

    def put_foreign_volumes(self) -> Sequence[str]:
        """Create volumes that are not this cluster's, of another cluster and without tags; return their IDs."""
        ...


UID = "uid-web"


def by_code(codes: Mapping[type[CloudError], str]) -> Mapping[str, type[CloudError]]:
    """The error of each of these codes, which are words."""
    return {code: error for error, words in codes.items() for code in words.split()}


def web(
    harness: Harness,
    *numbers: int,
    udp: Sequence[int] = (),
    name: str = "web",
    annotations: Mapping[str, str] | None = None,
    offset: int = 0,
) -> Object:
    """A Service with these ports (those of UDP if it can have them) and further annotations; `offset`: of its node
    ports."""
    ports = [port(number, nodePort=30000 + number % 1000 + offset) for number in numbers or (8080,)]
    ports += [port(number, "UDP") for number in udp if harness.has_udp]
    spec: dict[str, Any] = {"loadBalancerClass": harness.load_balancer_class} if harness.load_balancer_class else {}
    return service({**harness.annotations, **(annotations or {})}, *ports, name=name, **spec)


def desired(cloud: Cloud, wanted: Object, nodes: Sequence[Object]) -> LoadBalancerModel:
    """The load balancer that the Service should have with these nodes."""
    load_balancers = cloud.load_balancers
    assert load_balancers is not None
    builder = load_balancers.builder
    backends = [backend for node in nodes if (backend := builder.backend(node)) is not None]
    assert len(backends) == len(nodes), "every node is a possible backend"
    return builder.build(wanted, Backends(tuple(backends)), load_balancers.facts([wanted], {}, ())).model


def differences(found: Snapshot, expected: Snapshot) -> dict[str, tuple[object, object]]:
    """What differs between two snapshots, by key: as found, and as expected."""
    keys = sorted({*found, *expected})
    return {key: (found.get(key), expected.get(key)) for key in keys if found.get(key) != expected.get(key)}

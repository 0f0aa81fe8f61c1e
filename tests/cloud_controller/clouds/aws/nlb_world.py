"""A cluster whose Services get network load balancers in an account of AWS, driven by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from botocore.exceptions import ClientError

from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.cloud import Aws
from cloud_controller.clouds.aws.errors import translated
from cloud_controller.controllers.service.checkpoint import Checkpoint
from cloud_controller.controllers.service.controller import (
    NODES_CHANGED,
    POLL,
    RESYNC,
    ServiceController,
    ServiceOptions,
)
from cloud_controller.kube import Object
from cloud_controller.load_balancers.operations import Remembering
from cloud_controller.metrics import Metrics
from tests.cloud_controller.clouds.aws.conftest import AwsAccount, Calls
from tests.cloud_controller.clouds.mycloud.service_world import Cluster, Copies
from tests.cloud_controller.guard import guard

TYPE = "service.beta.kubernetes.io/aws-load-balancer-type"
WEB = "default/web"

Refusal = tuple[str, str]
"""AWS's code and message."""

_CLIENTS: dict[str, dict[str, Any]] = {}
"""boto3's, by endpoint: to make them anew takes as long as all calls of a restart."""


def nlb(
    name: str = "web",
    *ports: dict[str, Any],
    uid: str | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A Service that asks for a network load balancer; without ports, with two."""
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": uid or f"uid-{name}",
            "annotations": {TYPE: "nlb", **(annotations or {})},
        },
        "spec": {"type": "LoadBalancer", "ports": [*ports] or [port(80, 30080), port(443, 30443)], **spec},
        "status": {},
    }


def port(number: int, node_port: int, protocol: str = "TCP") -> dict[str, Any]:
    return {"protocol": protocol, "port": number, "nodePort": node_port}


def put_nodes(cluster: Cluster, machines: Iterable[Any]) -> None:
    """Nodes of these machines."""
    for machine in machines:
        cluster.objects["nodes"][machine["InstanceId"]] = {
            "metadata": {"name": machine["InstanceId"], "labels": {}, "annotations": {}},
            "spec": {"providerID": f"aws:///{machine['Placement']['AvailabilityZone']}/{machine['InstanceId']}"},
            "status": {"addresses": [{"type": "InternalIP", "address": machine["PrivateIpAddress"]}]},
        }


class Running:
    """A controller that was just started, and what it calls. `wrap` may stand between it and AWS."""

    def __init__(
        self,
        account: AwsAccount,
        cluster: Cluster,
        *,
        wrap: Callable[[Aws], None] = lambda _: None,
        checkpoint: Any = None,
        resync: bool = True,
        options: ServiceOptions | None = None,
        **config: Any,
    ) -> None:
        self.calls = Calls()
        self.cloud = Aws(account.config(**config))
        self.cloud._api._clients = _CLIENTS.setdefault(account.endpoint, {})
        self.cloud.observe_calls(self.calls)
        self.cluster = cluster
        wrap(self.cloud)
        services, nodes, slices = (Copies(cluster.objects[kind]) for kind in ("services", "nodes", "endpointslices"))
        assert isinstance(self.cloud.load_balancers, Remembering)
        self.checkpoint = (
            Checkpoint(checkpoint, self.cloud.cluster_id, self.cloud.load_balancers) if checkpoint else None
        )
        self.controller = ServiceController(
            cluster,  # type: ignore[arg-type]
            self.cloud,
            services,  # type: ignore[arg-type]
            nodes,  # type: ignore[arg-type]
            slices,  # type: ignore[arg-type]
            cluster,
            Metrics(),
            options or ServiceOptions(resync=300.0),
            guard(cluster),
            self.checkpoint,
        )
        if resync:
            self.controller.handle(RESYNC)

    def settle(self, *keys: str, rounds: int = 4) -> None:
        """Visits of these Services, or of all, with the cloud at work in between."""
        for _ in range(rounds):
            for key in keys or self.keys():
                self.controller.handle(key)
            self.controller.handle(POLL)

    def keys(self) -> list[str]:
        """All Services that are there or were."""
        return sorted({*self.cluster.objects["services"], *self.controller._cache.keys()})

    def take_nodes(self) -> None:
        """The nodes have changed."""
        self.controller._debouncer.reset()
        self.controller.handle(NODES_CHANGED)

    def resync(self) -> None:
        """Everything is read again."""
        self.controller.handle(RESYNC)


class Refusing:
    """AWS, where `refuses` answers a refusal for a call."""

    def __init__(self, refuses: Callable[[str, dict[str, Any]], Refusal | None]) -> None:
        self.refuses = refuses

    def end(self) -> None:
        """It refuses nothing from here on."""
        self.refuses = lambda _operation, _params: None

    def __call__(self, cloud: Aws) -> None:
        api = cloud._api
        real = api.call

        def call(service: str, operation: str, /, **params: Any) -> dict[str, Any]:
            refusal = self.refuses(operation, params)
            if refusal is not None:
                code, message = refusal
                error = ClientError({"Error": {"Code": code, "Message": message}}, operation)
                raise translated(error, service, operation) from error
            return real(service, operation, **params)

        api.call = call  # type: ignore[method-assign]


class LeavingZones(Refusing):
    """AWS, where the removal of a subnet is not complete until `free`, and nothing of its zone is taken before."""

    def __init__(self, account: AwsAccount) -> None:
        super().__init__(self._taken)
        self._account = account
        self._zones = {each["SubnetId"]: each["AvailabilityZone"] for each in account.ec2.describe_subnets()["Subnets"]}
        self._leaving: set[str] = set()

    def free(self) -> None:
        """AWS has finished."""
        self._leaving.clear()

    def _taken(self, operation: str, params: dict[str, Any]) -> Refusal | None:
        if operation == "SetSubnets":
            present, wanted = subnets_of(self._account), {*params["Subnets"]}
            if taken := {self._zones[each] for each in wanted - present} & self._leaving:
                why = "You cannot specify an additional subnet from an Availability Zone that is already associated"
                return "InvalidConfigurationRequest", f"{why} with the load balancer: {taken.pop()}"
            self._leaving.update(self._zones[each] for each in present - wanted)
        return None


def in_subnets(*subnets: str) -> dict[str, str]:
    """The annotations of an internal load balancer in these subnets."""
    return CATALOGUE.annotations({"internal": True, "subnets": subnets})


def subnets_of(account: AwsAccount) -> set[str]:
    """The subnets of the only load balancer."""
    (lb,) = load_balancers(account)
    return {each["SubnetId"] for each in lb["AvailabilityZones"]}


def load_balancers(account: AwsAccount) -> list[Any]:
    """All network load balancers of the account."""
    return account.elbv2.describe_load_balancers()["LoadBalancers"]


def target_groups(account: AwsAccount) -> list[Any]:
    """All target groups of the account."""
    return account.elbv2.describe_target_groups()["TargetGroups"]


def groups_made(account: AwsAccount) -> list[str]:
    """The names of the security groups that are not the VPC's or the nodes' own."""
    found = account.ec2.describe_security_groups()["SecurityGroups"]
    return sorted(group["GroupName"] for group in found if group["GroupName"] not in ("default", "nodes"))


def targets(account: AwsAccount, group: Any) -> set[tuple[str, int]]:
    """The registered targets of a target group."""
    health = account.elbv2.describe_target_health(TargetGroupArn=group["TargetGroupArn"])
    return {(each["Target"]["Id"], each["Target"]["Port"]) for each in health["TargetHealthDescriptions"]}


def listeners(account: AwsAccount, load_balancer: Any) -> dict[int, Any]:
    """The listeners of a load balancer, by port."""
    found = account.elbv2.describe_listeners(LoadBalancerArn=load_balancer["LoadBalancerArn"])["Listeners"]
    return {each["Port"]: each for each in found}


def node_rules(account: AwsAccount) -> int:
    """How many rules let others in to the nodes."""
    group = account.ec2.describe_security_groups(GroupIds=[account.node_group_id])["SecurityGroups"][0]
    return sum(len(each.get("UserIdGroupPairs", ())) for each in group["IpPermissions"])


def assert_nothing_left(account: AwsAccount) -> None:
    assert load_balancers(account) == []
    assert target_groups(account) == []
    assert groups_made(account) == []
    assert node_rules(account) == 0

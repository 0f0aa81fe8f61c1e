"""mycloud's load balancers: what a Service comes to on them, what exists, and one small method an operation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from cloud_controller.catalogue import Catalogue
from cloud_controller.cloud import CloudError, NotFound
from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.clouds.mycloud.build import build
from cloud_controller.clouds.mycloud.client import Client, known_state, typed_error
from cloud_controller.clouds.mycloud.scope import Scope
from cloud_controller.load_balancer import (
    CLUSTER_TAG,
    SERVICE_UID_TAG,
    Built,
    HealthCheck,
    Ingress,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    Member,
    Object,
    ObservedLoadBalancer,
    Pool,
)
from cloud_controller.load_balancer_operations import (
    AddMembers,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    DeletePool,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)

BATCH = 40
"""Backends that the API takes at once."""

_FEW_SERVICES = 3
"""Up to so many Services are asked for one by one; more are found in the pages of the whole cluster."""

_STATES = {
    "creating": LoadBalancerState.PENDING,
    "available": LoadBalancerState.READY,
    # A listener is being opened or closed; the others serve.
    "updating": LoadBalancerState.READY,
    "failed": LoadBalancerState.FAILED,
    "deleting": LoadBalancerState.DELETING,
}

_UNSETTLED = frozenset({"creating", "updating", "deleting"})


class MyCloudLoadBalancers:
    """The load balancers that carry one cluster's tag."""

    def __init__(self, client: Client, scope: Scope, default_scheme: str) -> None:
        self._client = client
        self._scope = scope
        self._default_scheme = default_scheme

    @property
    def catalogue(self) -> Catalogue:
        """mycloud's annotations."""
        return CATALOGUE

    def build(self, service: Object, nodes: Sequence[Object]) -> Built:
        """The load balancer that the Service shall have; pure."""
        return build(service, nodes, cluster_id=self._scope.cluster_id, default_scheme=self._default_scheme)

    # -------------------------------------------------------------------------------------------------------- reads

    def read(self, service_uids: Collection[str] | None = None) -> Sequence[ObservedLoadBalancer]:
        """Those with this cluster's tag, in pages; for a few Services only theirs."""
        cluster = {CLUSTER_TAG: self._scope.cluster_id}
        if service_uids is not None and len(service_uids) <= _FEW_SERVICES:
            found = [
                lb
                for uid in sorted(service_uids)
                for lb in self._client.list("load_balancers", tags={**cluster, SERVICE_UID_TAG: uid})
            ]
        else:
            found = self._client.list("load_balancers", tags=cluster)
            if service_uids is not None:
                found = [lb for lb in found if lb["tags"].get(SERVICE_UID_TAG) in service_uids]
        return [_observed(lb) for lb in found]

    # ------------------------------------------------------------------------------------------------------- writes

    def create(self, operation: CreateLoadBalancer) -> None:
        """Make it whole; the same token again makes no second one."""
        model = operation.model
        body = {
            "name": model.name,
            "network_id": self._scope.network_id,
            "tags": dict(model.tags),
            "client_token": operation.client_token,
            **model.attributes,
            "backend_sets": [{"name": pool.name, **_pool_body(pool), **_members_body(pool)} for pool in model.pools],
            "listeners": [
                {"protocol": listener.protocol, "port": listener.port, **_listener_body(listener)}
                for listener in model.listeners
            ],
        }
        self._client.create("load_balancers", body)

    def update(self, operation: UpdateLoadBalancer) -> None:
        """Give it this name and these tags; mycloud can change nothing else in place."""
        changes = {"name": operation.model.name, "tags": dict(operation.model.tags)}
        self._client.update("load_balancers", operation.id, changes)

    def put_pool(self, operation: PutPool) -> None:
        """Make the pool, or change its settings."""
        body = _pool_body(operation.pool) | (_members_body(operation.pool) if operation.new else {})
        self._client.put(f"load_balancers/{operation.id}/backend_sets/{operation.pool.name}", body)

    def add_members(self, operation: AddMembers) -> None:
        """Add the members, or change them."""
        path = f"load_balancers/{operation.id}/backend_sets/{operation.pool}/backends:batch_register"
        self._raise_first(self._batches(path, [_member_body(member) for member in operation.members]))

    def remove_members(self, operation: RemoveMembers) -> None:
        """Take the members out."""
        path = f"load_balancers/{operation.id}/backend_sets/{operation.pool}/backends:batch_deregister"
        errors = self._batches(path, [{"address": m.address, "port": m.port} for m in operation.members])
        self._raise_first(error for error in errors if not isinstance(error, NotFound))

    def put_listener(self, operation: PutListener) -> None:
        """Make the listener, or change it."""
        listener = operation.listener
        path = f"load_balancers/{operation.id}/listeners/{listener.protocol}/{listener.port}"
        self._client.put(path, _listener_body(listener))

    def delete_listener(self, operation: DeleteListener) -> None:
        """Delete the listener."""
        self._delete(f"load_balancers/{operation.id}/listeners/{operation.protocol}/{operation.port}")

    def delete_pool(self, operation: DeletePool) -> None:
        """Delete the pool."""
        self._delete(f"load_balancers/{operation.id}/backend_sets/{operation.name}")

    def delete(self, operation: DeleteLoadBalancer) -> None:
        """Begin to delete it with all its parts."""
        self._delete(f"load_balancers/{operation.id}")

    def _delete(self, path: str) -> None:
        try:
            self._client.delete_path(path)
        except NotFound:
            return

    def _batches(self, path: str, backends: Sequence[dict[str, Any]]) -> Iterator[CloudError]:
        """The errors of single backends; every batch is sent, whatever another's answer."""
        for start in range(0, len(backends), BATCH):
            # Registered or deregistered twice is once.
            body = {"backends": backends[start : start + BATCH]}
            for result in self._client.post(path, body, idempotent=True)["results"]:
                if error := result["error"]:
                    yield typed_error(error, f"{path.rpartition(':')[2]} {result['address']}:{result['port']}")

    def _raise_first(self, errors: Iterator[CloudError]) -> None:
        for error in [*errors]:
            raise error


# ------------------------------------------------------------------------------------------------- the API's objects


def _listener_body(listener: Listener) -> dict[str, Any]:
    return {"backend_set": listener.pool, **listener.attributes}


def _pool_body(pool: Pool) -> dict[str, Any]:
    check = pool.health_check
    return {
        **pool.attributes,
        "health_check": {
            "protocol": check.protocol,
            "port": check.port,
            "path": check.path,
            "interval_seconds": check.interval_seconds,
            "timeout_seconds": check.timeout_seconds,
            "healthy_threshold": check.healthy_threshold,
            "unhealthy_threshold": check.unhealthy_threshold,
        },
    }


def _members_body(pool: Pool) -> dict[str, Any]:
    return {"backends": [_member_body(member) for member in pool.members]}


def _member_body(member: Member) -> dict[str, Any]:
    return {
        "machine_id": member.instance_id,
        "address": member.address,
        "port": member.port,
        "weight": member.weight,
    }


def _observed(lb: dict[str, Any]) -> ObservedLoadBalancer:
    pools = tuple(
        Pool(
            name=pool["name"],
            health_check=HealthCheck(**pool["health_check"]),
            members=tuple(
                Member(
                    address=backend["address"],
                    port=backend["port"],
                    instance_id=backend["machine_id"],
                    weight=backend["weight"],
                )
                for backend in pool["backends"]
            ),
            attributes={"scheduler": pool["scheduler"]},
        )
        for pool in lb["backend_sets"]
    )
    listeners = tuple(
        Listener(
            protocol=listener["protocol"],
            port=listener["port"],
            pool=listener["backend_set"],
            attributes={
                "max_qps": listener["max_qps"],
                "idle_timeout_seconds": listener["idle_timeout_seconds"],
            },
        )
        for listener in lb["listeners"]
    )
    return ObservedLoadBalancer(
        id=lb["id"],
        state=known_state(lb, _STATES),
        state_reason=lb["state_reason"],
        model=LoadBalancerModel(
            name=lb["name"],
            attributes={"scheme": lb["scheme"]},
            listeners=listeners,
            pools=pools,
            tags=lb["tags"],
        ),
        # It forwards from an address of its own: traffic from inside the cluster must pass through it too.
        ingress=(Ingress(ip=lb["address"], ip_mode="Proxy"),),
        created_at=lb["created_at"],
        settled=lb["state"] not in _UNSETTLED,
    )

"""mycloud's load balancers: reads what exists, and applies operations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import CloudError, Conflict, InvalidConfiguration, NotFound
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.clouds.common.refused_members import require_none
from cloud_controller.clouds.mycloud.build import (
    MyCloudBuilder,
    reuses,
)
from cloud_controller.clouds.mycloud.client import Client, known_state, typed_error
from cloud_controller.clouds.mycloud.scope import Scope
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.failures import one_by_one
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    SERVICE_UID_TAG,
    HealthCheck,
    Ingress,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    Object,
    ObservedLoadBalancer,
    Owner,
    Pool,
)
from cloud_controller.load_balancers.operations import (
    AddMembers,
    AdoptLoadBalancer,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    DeletePool,
    Operation,
    OperationResult,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)

BATCH = 40
"""The most backends in one call."""

_FEW = 3
"""Up to this many Services or load balancers are read singly, more in pages."""

_POOL_ATTRIBUTES = ("scheduler", "session_affinity", "session_affinity_timeout_seconds")
_LISTENER_ATTRIBUTES = ("max_qps", "idle_timeout_seconds")

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
    """The load balancers with one cluster's tag."""

    def __init__(self, client: Client, scope: Scope, default_scheme: str) -> None:
        self._client = client
        self._scope = scope
        self._builder = MyCloudBuilder(scope.cluster_id, default_scheme)

    @property
    def builder(self) -> MyCloudBuilder:
        """What Services and nodes become; pure."""
        return self._builder

    # -------------------------------------------------------------------------------------------------------- reads

    def facts(self, services: Sequence[Object], *_: object) -> Fact[str]:
        """The cluster's network, if one of these Services reuses a load balancer."""
        return Fact.read(lambda: self._scope.network_id) if any(map(reuses, services)) else Fact()

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> Sequence[ObservedLoadBalancer]:
        """Those with this cluster's tag on them or their parts, or those of these Services; and those with these
        IDs."""
        found = {lb["id"]: lb for lb in self._tagged(service_uids)}
        missing = set(ids) - found.keys()
        if len(missing) > _FEW:
            found |= {lb["id"]: lb for lb in self._client.list("load_balancers", ids=missing)}
        # Lists may lag behind; a GET of the object does not.
        for single in sorted(missing - found.keys()):
            try:
                found[single] = self._client.get("load_balancers", single)
            except NotFound:
                continue
        return [_observed(lb) for lb in found.values()]

    def _tagged(self, service_uids: Collection[str] | None) -> Iterator[Object]:
        if service_uids is not None and len(service_uids) <= _FEW:
            for uid in sorted(service_uids):
                yield from self._client.list("load_balancers", any_tag=f"{SERVICE_UID_TAG}={uid}")
            return
        for lb in self._client.list("load_balancers", any_tag=f"{CLUSTER_TAG}={self._scope.cluster_id}"):
            tags = [lb["tags"], *(part["tags"] for part in (*lb["listeners"], *lb["backend_sets"]))]
            owners = {owner.uid for each in tags if (owner := Owner.of_tags(each))}
            if service_uids is None or owners & set(service_uids):
                yield lb

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]:
        """Whether each member passes its health check, where known."""
        items = self._client.get_path(f"load_balancers/{id}/health")["items"]
        return {
            (each["backend_set"], each["address"], each["port"]): each["healthy"]
            for each in items
            if each["healthy"] is not None
        }

    # ------------------------------------------------------------------------------------------------------- writes

    def perform(self, _: ObservedLoadBalancer | None, operations: Sequence[Operation]) -> list[OperationResult]:
        """Each operation is one call, those on members one for each `BATCH`."""
        return one_by_one(operations, self._functions)

    @property
    def _functions(self) -> Mapping[type, Callable[[Any], ObservedLoadBalancer | None]]:
        return {
            CreateLoadBalancer: self._create,
            AdoptLoadBalancer: self._adopt,
            UpdateLoadBalancer: self._update,
            PutPool: self._put_pool,
            AddMembers: self._add_members,
            RemoveMembers: self._remove_members,
            PutListener: self._put_listener,
            DeleteListener: self._delete_listener,
            DeletePool: self._delete_pool,
            DeleteLoadBalancer: self._delete_load_balancer,
        }

    def _create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        try:
            return self._created(operation)
        except (InvalidConfiguration, Conflict) as error:
            # An earlier attempt, whose answer was lost, may have used the token for a body without members.
            if not isinstance(error, Conflict) and not _is_of_members(error):
                raise
        # Added in batches by the next plan, each member has a result of its own.
        pools = tuple(replace(pool, members=()) for pool in operation.model.pools)
        return self._created(replace(operation, model=replace(operation.model, pools=pools)))

    def _created(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
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
        return _observed(self._client.create("load_balancers", body))

    def _adopt(self, operation: AdoptLoadBalancer) -> None:
        raise CloudError(
            f"mycloud: load balancer {operation.id} cannot be adopted: no other controller creates load balancers here"
        )

    def _update(self, operation: UpdateLoadBalancer) -> None:
        model = operation.model
        changes: dict[str, Any] = {"name": model.name, "tags": dict(model.tags)}
        if "source_ranges" in model.attributes:
            changes["source_ranges"] = model.attributes["source_ranges"]
        self._client.update("load_balancers", operation.id, changes)

    def _put_pool(self, operation: PutPool) -> None:
        pool, path = operation.pool, f"load_balancers/{operation.id}/backend_sets/{operation.pool.name}"
        body = _pool_body(pool)
        if not operation.new:
            self._client.put(path, body)
            return
        try:
            self._client.put(path, body | _members_body(pool))
        except InvalidConfiguration as error:
            if not _is_of_members(error):
                raise
            self._client.put(path, body | _members_body(replace(pool, members=())))
            self._add_members(AddMembers(operation.id, pool.name, pool.members))

    def _add_members(self, operation: AddMembers) -> None:
        path = f"load_balancers/{operation.id}/backend_sets/{operation.pool}/backends:batch_register"
        members = {member.key: member for member in operation.members}
        errors = self._batches(path, [_member_body(member) for member in operation.members])
        refused = {members[key]: error for key, error in errors.items()}
        self._raise_first(error for error in refused.values() if not isinstance(error, InvalidConfiguration))
        require_none(refused)

    def _remove_members(self, operation: RemoveMembers) -> None:
        path = f"load_balancers/{operation.id}/backend_sets/{operation.pool}/backends:batch_deregister"
        errors = self._batches(path, [{"address": m.address, "port": m.port} for m in operation.members])
        self._raise_first(error for error in errors.values() if not isinstance(error, NotFound))

    def _put_listener(self, operation: PutListener) -> None:
        listener = operation.listener
        path = f"load_balancers/{operation.id}/listeners/{listener.protocol}/{listener.port}"
        self._client.put(path, _listener_body(listener))

    def _delete_listener(self, operation: DeleteListener) -> None:
        self._delete(f"load_balancers/{operation.id}/listeners/{operation.protocol}/{operation.port}")

    def _delete_pool(self, operation: DeletePool) -> None:
        self._delete(f"load_balancers/{operation.id}/backend_sets/{operation.name}")

    def _delete_load_balancer(self, operation: DeleteLoadBalancer) -> None:
        self._delete(f"load_balancers/{operation.id}")

    def _delete(self, path: str) -> None:
        try:
            self._client.delete_path(path)
        except NotFound:
            return

    def _batches(self, path: str, backends: Sequence[dict[str, Any]]) -> dict[tuple[str, int], CloudError]:
        """The errors of single backends. Every batch is sent, whatever the results of others."""
        errors = {}
        for batch in batches(backends, BATCH):
            # Registered or deregistered twice is once.
            for result in self._client.post(path, {"backends": batch}, idempotent=True)["results"]:
                if error := result["error"]:
                    key = (result["address"], result["port"])
                    errors[key] = typed_error(error, f"{path.rpartition(':')[2]} {key[0]}:{key[1]}")
        return errors

    def _raise_first(self, errors: Iterator[CloudError]) -> None:
        for error in errors:
            raise error


# ------------------------------------------------------------------------------------------------- the API's objects


def _is_of_members(error: InvalidConfiguration) -> bool:
    """Whether the API refused the whole because of members, such as of a machine that is gone."""
    return error.field.startswith("backend_sets.") and error.field.endswith(".backends")


def _listener_body(listener: Listener) -> dict[str, Any]:
    return {"backend_set": listener.pool, "tags": dict(listener.tags), **listener.attributes}


def _pool_body(pool: Pool) -> dict[str, Any]:
    check = pool.health_check
    return {
        **pool.attributes,
        "tags": dict(pool.tags),
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
                    # Each node is a member of many load balancers.
                    address=sys.intern(backend["address"]),
                    port=backend["port"],
                    instance_id=sys.intern(backend["machine_id"]),
                    weight=backend["weight"],
                )
                for backend in pool["backends"]
            ),
            attributes={name: pool[name] for name in _POOL_ATTRIBUTES},
            tags=pool["tags"],
        )
        for pool in lb["backend_sets"]
    )
    listeners = tuple(
        Listener(
            protocol=listener["protocol"],
            port=listener["port"],
            pool=listener["backend_set"],
            attributes={name: listener[name] for name in _LISTENER_ATTRIBUTES},
            tags=listener["tags"],
        )
        for listener in lb["listeners"]
    )
    return ObservedLoadBalancer(
        id=lb["id"],
        state=known_state(lb, _STATES),
        state_reason=lb["state_reason"],
        model=LoadBalancerModel(
            name=lb["name"],
            attributes={"scheme": lb["scheme"], "source_ranges": tuple(lb["source_ranges"])},
            listeners=listeners,
            pools=pools,
            tags=lb["tags"],
        ),
        # It forwards from an address of its own, so traffic from inside the cluster must pass through it too.
        ingress=(Ingress(ip=lb["address"], ip_mode="Proxy"),),
        created_at=lb["created_at"],
        settled=lb["state"] not in _UNSETTLED,
        network=lb["network_id"],
    )

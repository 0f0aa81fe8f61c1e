"""Changes of classic load balancers: each operation in the fewest calls that CLB's API allows."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import CloudError, Conflict, InvalidConfiguration, NotFound, Unavailable
from cloud_controller.clouds.alicloud.clb.annotations import field
from cloud_controller.clouds.alicloud.clb.groups import Groups
from cloud_controller.clouds.alicloud.clb.listeners import Listeners
from cloud_controller.clouds.alicloud.clb.memory import Memory
from cloud_controller.clouds.alicloud.clb.reads import Reads
from cloud_controller.clouds.alicloud.clb.tagging import set_tags
from cloud_controller.clouds.alicloud.errors import error_code
from cloud_controller.clouds.alicloud.patience import PatientClient
from cloud_controller.clouds.alicloud.tags import tag_list
from cloud_controller.load_balancers.model import (
    Ingress,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.operations import (
    AddMembers,
    AdoptLoadBalancer,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    DeletePool,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)

_LISTENER_EXISTS = "ListenerAlreadyExists"
_REASON = "managed-by-cloud-controller"
_AT_CREATION = {
    "address_type": "AddressType",
    "address_ip_version": "AddressIPVersion",
    "vswitch_id": "VSwitchId",
    "address": "Address",
    "master_zone_id": "MasterZoneId",
    "slave_zone_id": "SlaveZoneId",
    "resource_group_id": "ResourceGroupId",
    "instance_charge_type": "InstanceChargeType",
    "load_balancer_spec": "LoadBalancerSpec",
    "internet_charge_type": "InternetChargeType",
    "bandwidth": "Bandwidth",
    "deletion_protection": "DeleteProtection",
    "modification_protection": "ModificationProtectionStatus",
}


class Changes:
    """The operations on one load balancer, as last observed (None: it is created)."""

    def __init__(
        self,
        client: PatientClient,
        vpc_id: str,
        memory: Memory,
        reads: Reads,
        groups: Groups,
        listeners: Listeners,
        lb: ObservedLoadBalancer | None,
    ) -> None:
        self._client = client
        self._vpc_id = vpc_id
        self._memory = memory
        self._reads = reads
        self._groups = groups
        self._listeners = listeners
        self._lb = lb
        self._put: set[tuple[str, int]] = set()
        """The listeners that are not as observed any more."""

    @property
    def functions(self) -> Mapping[type, Callable[[Any], ObservedLoadBalancer | None]]:
        """What performs each type of operation."""
        return {
            CreateLoadBalancer: self._create,
            AdoptLoadBalancer: self._adopt,
            UpdateLoadBalancer: self._update,
            PutPool: self._put_pool,
            AddMembers: self._groups.add,
            RemoveMembers: self._groups.remove,
            PutListener: self._put_listener,
            DeleteListener: self._delete_listener,
            DeletePool: self._groups.delete,
            DeleteLoadBalancer: self._delete,
        }

    # --------------------------------------------------------------------------------------------- load balancers

    def _create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        model = operation.model
        asked: dict[str, Any] = {wire: model.attributes.get(name) for name, wire in _AT_CREATION.items()}
        if model.attributes.get("modification_protection") == "ConsoleProtection":
            asked["ModificationProtectionReason"] = _REASON
        if model.attributes.get("address_type") == "intranet":
            asked["VpcId"] = self._vpc_id
        asked |= {"LoadBalancerName": model.name, "Tag": tag_list(model.tags)}
        # The API takes 64 characters.
        token = hashlib.sha256(operation.client_token.encode()).hexdigest()
        # The API remembers a token for longer than its load balancer exists: then nothing is left to be found again.
        for each in (token, uuid.uuid4().hex):
            answer = self._call("CreateLoadBalancer", **asked, ClientToken=each)
            try:
                return self._with_parts(model, answer)
            except (Conflict, NotFound) as error:
                # To the caller, Conflict says that the token is another's, and it would make a second load balancer.
                lb_id = answer["LoadBalancerId"]
                unfinished = Unavailable(f"load balancer {lb_id} is not complete: {error}")
                if isinstance(error, Conflict) or not self._is_gone(lb_id):
                    raise unfinished from error
        raise unfinished

    def _is_gone(self, lb_id: str) -> bool:
        try:
            self._call("DescribeLoadBalancerAttribute", LoadBalancerId=lb_id)
        except NotFound:
            return True
        return False

    def _with_parts(self, model: LoadBalancerModel, answer: Mapping[str, Any]) -> ObservedLoadBalancer:
        lb_id = answer["LoadBalancerId"]
        lb = ObservedLoadBalancer(
            lb_id,
            LoadBalancerState.READY,
            replace(model, listeners=(), pools=()),
            ingress=(Ingress(ip=answer["Address"]),) if answer.get("Address") else (),
            network=answer.get("VpcId") or None,
        )
        groups = [self._groups.make(lb_id, pool)[0] for pool in model.pools]
        for listener in model.listeners:
            self._put_or_change(lb_id, listener, None)
        # Pods that have no network interface yet and servers that are refused are missing: the next plan adds them.
        made = (tuple(each.member for each in group.servers) for group in groups)
        pools = tuple(replace(pool, members=members) for pool, members in zip(model.pools, made, strict=True))
        return replace(lb, model=replace(model, pools=pools))

    def _adopt(self, operation: AdoptLoadBalancer) -> None:
        raise CloudError(f"Alibaba Cloud: load balancer {operation.id} cannot be adopted")

    def _update(self, operation: UpdateLoadBalancer) -> None:
        lb_id, wanted, actual = operation.id, operation.model, self._model
        if wanted.name != actual.name:
            self._call("SetLoadBalancerName", LoadBalancerId=lb_id, LoadBalancerName=wanted.name)
        set_tags(self._client, "instance", lb_id, wanted.tags, actual.tags)
        changed = {name: value for name, value in wanted.attributes.items() if value != actual.attributes.get(name)}
        self._charge(lb_id, wanted, changed)
        if "modification_protection" in changed:
            status = changed["modification_protection"]
            self._call(
                "SetLoadBalancerModificationProtection",
                LoadBalancerId=lb_id,
                ModificationProtectionStatus=status,
                ModificationProtectionReason=_REASON if status == "ConsoleProtection" else None,
            )
        if "deletion_protection" in changed:
            protection = changed["deletion_protection"]
            self._call("SetLoadBalancerDeleteProtection", LoadBalancerId=lb_id, DeleteProtection=protection)

    def _charge(self, lb_id: str, wanted: LoadBalancerModel, changed: Mapping[str, Any]) -> None:
        if changed.get("instance_charge_type") == "PayBySpec":
            why = "the cloud does not change a load balancer from PayByCLCU to PayBySpec"
            raise InvalidConfiguration(field("instance_charge_type"), why, "PayByCLCU; or a new Service")
        if "instance_charge_type" in changed:
            self._call("ModifyLoadBalancerInstanceChargeType", LoadBalancerId=lb_id, InstanceChargeType="PayByCLCU")
        if "load_balancer_spec" in changed:
            spec = changed["load_balancer_spec"]
            self._call("ModifyLoadBalancerInstanceSpec", LoadBalancerId=lb_id, LoadBalancerSpec=spec)
        # A change to PayByCLCU brings payment by traffic with it.
        if {"internet_charge_type", "bandwidth"} & changed.keys() and "instance_charge_type" not in changed:
            self._call(
                "ModifyLoadBalancerInternetSpec",
                LoadBalancerId=lb_id,
                InternetChargeType=wanted.attributes.get("internet_charge_type"),
                Bandwidth=wanted.attributes.get("bandwidth"),
            )

    def _delete(self, operation: DeleteLoadBalancer) -> None:
        lb_id = operation.id
        with suppress(NotFound):
            if self._lb is None or self._model.attributes.get("deletion_protection") != "off":
                self._call("SetLoadBalancerDeleteProtection", LoadBalancerId=lb_id, DeleteProtection="off")
            self._call("DeleteLoadBalancer", LoadBalancerId=lb_id)
        self._memory.forget_all_of(lb_id)

    # ------------------------------------------------------------------------------------------------------- parts

    def _put_pool(self, operation: PutPool) -> None:
        before = next((each.tags for each in self._model.pools if each.name == operation.pool.name), {})
        self._groups.put(operation, before)

    def _put_listener(self, operation: PutListener) -> None:
        listener = operation.listener
        before = next((each for each in self._model.listeners if each.key == listener.key), None)
        if listener.protocol == "TCP" and listener.attributes.get("protocol") != "https":
            # The cloud keeps a listener to which another one redirects. Those of this Service change later in the plan.
            for each in self._model.listeners:
                mine = Owner.of_tags(each.tags) == Owner.of_tags(listener.tags)
                if mine and each.key not in self._put and each.attributes.get("forward_port") == listener.port:
                    self._listeners.delete(operation.id, each)
        self._put_or_change(operation.id, listener, before)
        self._put.add(listener.key)

    def _put_or_change(self, lb_id: str, listener: Listener, before: Listener | None) -> None:
        group_id = self._groups.id_of(lb_id, listener.pool) if listener.pool else None
        try:
            self._listeners.put(lb_id, listener, before, group_id)
        except Conflict as error:
            if before is not None or error_code(error) != _LISTENER_EXISTS:
                raise
            # The creation is repeated, by a process that had not seen it.
            lb = next(iter(self._reads.read((), (lb_id,))), None)
            present = next((each for each in lb.model.listeners if each.key == listener.key), None) if lb else None
            self._listeners.put(lb_id, listener, present, group_id)

    def _delete_listener(self, operation: DeleteListener) -> None:
        key = (operation.protocol, operation.port)
        before = next((each for each in self._model.listeners if each.key == key), None)
        if before is not None:
            self._listeners.delete(operation.id, before)

    # ------------------------------------------------------------------------------------------------------ helpers

    @property
    def _model(self) -> LoadBalancerModel:
        if self._lb is None:
            raise Conflict("the load balancer has not been read")
        return self._lb.model

    def _call(self, action: str, **parameters: Any) -> dict[str, Any]:
        return self._client.call("slb", action, parameters)

"""How mycloud's networks, subnets, clusters and machines are made, changed, read and removed by Pulumi.

The engine's plugin unpickles these classes by reference (module and name): they must stay importable here, carry no
attributes of their own, and this module must import little and do nothing when imported. Endpoint and token come from
the stack's config in `configure`; no input or output but a cluster's kubeconfig holds a credential.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    UpdateResult,
)
from pulumi.output import Unknown

from cloud_controller.cloud import CloudError, Conflict, NotFound, Unavailable

from ...dynamic_provider import DynamicProvider
from ...placeholder import PlaceholderSecrets
from .access import Access

if TYPE_CHECKING:
    from cloud_controller.clouds.mycloud.client import Client

Properties = dict[str, Any]
Problem = str | None
"""What is wrong with an input, or None."""

MACHINE_TYPES = ("m1.small", "m1.medium", "m1.large")
ROLES = ("control-plane", "worker")
ZONES = ("zone-a", "zone-b", "zone-c")

_GONE = frozenset({"deleting", "terminated"})
_CONFLICT_PATIENCE = 30.0
"""Seconds to wait for dependents (load balancers, machines) that are just being deleted."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a kind: what is allowed, and whether a change of it is made in place or by replacement."""

    name: str
    problem: Callable[[Any], Problem]
    in_place: bool = False
    default: Any = None
    """None: the input is required."""


def _name(value: Any) -> Problem:
    ok = isinstance(value, str) and 1 <= len(value) <= 255
    return None if ok else f"{value!r} is not a name; allowed: 1 to 255 characters"


def _dns_label(value: Any) -> Problem:
    if isinstance(value, str) and re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", value):
        return None
    return f"{value!r} is not a DNS label; allowed: at most 63 of a-z, 0-9 and - (not at either end)"


def _id(prefix: str) -> Callable[[Any], Problem]:
    def problem(value: Any) -> Problem:
        ok = isinstance(value, str) and value.startswith(f"{prefix}-")
        return None if ok else f"{value!r} is not an id; allowed: {prefix}-…, as mycloud returns it"

    return problem


def _one_of(allowed: tuple[str, ...]) -> Callable[[Any], Problem]:
    def problem(value: Any) -> Problem:
        if value in allowed:
            return None
        nearest = difflib.get_close_matches(str(value), allowed, n=1)
        hint = f"did you mean {nearest[0]}? " if nearest else ""
        return f"{value!r} does not exist; {hint}allowed: {', '.join(allowed)}"

    return problem


def _texts(value: Any) -> Problem:
    if not isinstance(value, dict):
        return f"{value!r} is not a mapping; allowed: text to text"
    bad = [key for key, text in value.items() if not isinstance(text, str | Unknown)]
    return f"{bad[0]!r} is {value[bad[0]]!r}; allowed: text" if bad else None


def _node_labels(value: Any) -> Problem:
    if problem := _texts(value):
        return problem
    # NodeRestriction lets a kubelet set only a few labels of these domains, so its node would never register.
    for key in value:
        domain = key.partition("/")[0] if "/" in key else ""
        own = domain.endswith(("node.kubernetes.io", "kubelet.kubernetes.io"))
        if re.search(r"(^|\.)(kubernetes|k8s)\.io$", domain) and not own:
            return f"{key!r} is a label that a node must not set on itself; allowed: labels outside kubernetes.io"
    return None


_TAGS = Input("tags", _texts, in_place=True, default={})


class MycloudProvider(DynamicProvider):
    """What the four kinds share; each names its collection, its inputs and its states."""

    collection: ClassVar[str]
    inputs: ClassVar[tuple[Input, ...]]
    outputs: ClassVar[tuple[str, ...]]
    ready: ClassVar[str] = "available"
    deadline: ClassVar[float] = 60.0
    """Seconds that creation or deletion may take."""
    replaces_by_deleting_first: ClassVar[bool] = False

    _access: Access

    def configure(self, req: ConfigureRequest) -> None:
        super().configure(req)
        self._access = Access.from_config(req.config)

    @cached_property
    def _client(self) -> Client:
        return self._access.client()

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        failures = [
            CheckFailure(field.name, problem)
            for field in self.inputs
            if (problem := _problem(field, news.get(field.name))) is not None
        ]
        defaults = {field.name: field.default for field in self.inputs if news.get(field.name) is None}
        return CheckResult({**news, **{k: v for k, v in defaults.items() if v is not None}}, failures)

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        changed = [f for f in self.inputs if _value(f, _olds) != _value(f, _news)]
        replaces = [f.name for f in changed if not f.in_place]
        return DiffResult(bool(changed), replaces, [], bool(replaces) and self.replaces_by_deleting_first)

    def create(self, props: Properties) -> CreateResult:
        body = {field.name: props[field.name] for field in self.inputs if field.name in props}
        made = self._made(body)
        try:
            return CreateResult(made["id"], self._outputs(made, {}))
        except CloudError:
            self._give_up(made["id"])
            raise

    def read(self, id_: str, props: Properties) -> ReadResult:
        try:
            found = self._client.get(self.collection, id_)
        except NotFound:
            return ReadResult(None, {})
        if found["state"] in _GONE:
            return ReadResult(None, {})
        inputs = {field.name: found[field.name] for field in self.inputs}
        return ReadResult(id_, self._outputs(found, props), inputs)

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        changes = {f.name: _value(f, _news) for f in self.inputs if _value(f, _olds) != _value(f, _news)}
        return UpdateResult(self._outputs(self._client.update(self.collection, _id, changes), _olds))

    def delete(self, _id: str, _props: Properties) -> None:
        end = time.monotonic() + _CONFLICT_PATIENCE
        pause = 0.1
        while True:
            try:
                self._client.delete(self.collection, _id)
                return self._wait_until_gone(_id)
            except NotFound:
                return None
            except Conflict:
                # Something in it is still being deleted (mycloud deletes asynchronously), or will stay.
                if time.monotonic() + pause > end:
                    raise
            time.sleep(pause)
            pause = min(1.0, pause * 2)

    def _made(self, body: Properties) -> Properties:
        """The object that `body` asks for, ready: the one that an earlier, interrupted run made, or a new one.

        The idempotency token comes from the body, so a repetition finds what was made. A token lasts as long as its
        object: where that has died, or failed and been removed, the same token makes the next one.
        """
        token = hashlib.sha256(f"{self.collection}\n{json.dumps(body, sort_keys=True)}".encode()).hexdigest()
        while True:
            answer = self._answer({**body, "client_token": token})
            try:
                found = self._client.wait_for_state(
                    self.collection, answer["id"], {self.ready, "failed", *_GONE}, self.deadline
                )
            except NotFound:
                found = {**answer, "state": "deleting"}
            except Unavailable:
                self._give_up(answer["id"])
                raise
            if found["state"] == self.ready:
                return found
            if found["state"] == "failed":
                self._client.delete(self.collection, found["id"])
                if answer["state"] != "failed":
                    reason = found.get("state_reason") or "mycloud gave no reason"
                    raise CloudError(f"{self.collection}/{found['id']} ({body['name']}) failed: {reason}")

    def _give_up(self, id: str) -> None:
        # For the engine, a create that raises has made nothing: what is left then would LEAK.
        try:
            self._client.delete(self.collection, id)
        except CloudError:
            # The cloud does not answer, or the object is gone already. The next `up` finds it by its token; the user
            # must see why the create failed.
            return

    def _answer(self, body: Properties) -> Properties:
        try:
            return self._client.create(self.collection, body)
        except Conflict:
            leaving = self._client.list(self.collection, name=body["name"], state="deleting")
        # An object of an earlier run is still being deleted and holds this token, or did until just now.
        for old in leaving:
            self._wait_until_gone(old["id"])
        return self._client.create(self.collection, body)

    def _wait_until_gone(self, id: str) -> None:
        self._client.wait_until_gone(self.collection, id, self.deadline)

    def _outputs(self, found: Mapping[str, Any], _olds: Properties) -> Properties:
        return {name: found.get(name) for name in (*(field.name for field in self.inputs), *self.outputs)}


class NetworkProvider(MycloudProvider):
    """Networks. mycloud assigns their ranges."""

    collection = "networks"
    inputs = (Input("name", _name, in_place=True), _TAGS)
    outputs = ("cidr", "pod_cidr", "service_cidr", "load_balancer_cidr", "route_table_id", "state")

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        # Everything else is in a network, so a preview checks the credentials here.
        result = super().check(_olds, news)
        try:
            self._access.client(deadline=5.0).list("zones")
        except PlaceholderSecrets:
            return result
        except CloudError as error:
            result.failures.append(CheckFailure("", str(error)))
        return result


class SubnetProvider(MycloudProvider):
    """Subnets: a network's part of one zone."""

    collection = "subnets"
    inputs = (
        Input("name", _name, in_place=True),
        Input("network_id", _id("net")),
        Input("zone", _one_of(ZONES)),
        _TAGS,
    )
    outputs = ("cidr", "state")


class ClusterProvider(MycloudProvider):
    """Clusters: control planes that mycloud runs."""

    collection = "clusters"
    inputs = (Input("name", _name, in_place=True), Input("network_id", _id("net")), _TAGS)
    outputs = ("version", "endpoint", "certificate_authority", "state")
    deadline = 300.0

    def _outputs(self, found: Mapping[str, Any], _olds: Properties) -> Properties:
        outputs = super()._outputs(found, _olds)
        kubeconfig = _olds.get("kubeconfig")
        if not kubeconfig or _olds.get("certificate_authority") != found.get("certificate_authority"):
            # Each answer has a new client certificate: call again only when the old one is useless.
            kubeconfig = self._client.get_path(f"clusters/{found['id']}/kubeconfig")["kubeconfig"]
        return {**outputs, "kubeconfig": kubeconfig}


class MachineProvider(MycloudProvider):
    """Machines. Living machines have unique names, so the old one is deleted before its replacement is created."""

    collection = "machines"
    inputs = (
        Input("name", _dns_label),
        Input("subnet_id", _id("subnet")),
        Input("cluster_id", _id("c")),
        Input("type", _one_of(MACHINE_TYPES)),
        Input("role", _one_of(ROLES)),
        Input("node_labels", _node_labels, default={}),
        _TAGS,
    )
    outputs = ("zone", "region", "private_ips", "state")
    ready = "running"
    deadline = 120.0
    replaces_by_deleting_first = True

    def create(self, props: Properties) -> CreateResult:
        self._remove_leftover_node(props["cluster_id"], props["name"])
        return super().create(props)

    def _remove_leftover_node(self, cluster_id: str, name: str) -> None:
        """Delete a node of this name that an earlier, dead machine left behind.

        A kubelet adopts an existing node of its name, provider ID and addresses included. The node-lifecycle controller
        could not delete it in time: it waits until the node is not ready, and may have run on that machine.
        """
        from cloud_controller.kube import NODES, Kube, NotFoundError, uid

        credentials = self._client.post(f"clusters/{cluster_id}/credentials", {"ttl_seconds": 600}, idempotent=True)
        kube = Kube.from_kubeconfig(credentials["kubeconfig"])
        try:
            node = kube.get(NODES, name)
        except NotFoundError:
            return
        living = self._client.list(self.collection, name=name, cluster_id=cluster_id)
        if all(machine["state"] in _GONE for machine in living) and self._is_gone(node):
            try:
                kube.delete(NODES, name, uid=uid(node))
            except NotFoundError:
                return

    def _is_gone(self, node: Mapping[str, Any]) -> bool:
        """Whether mycloud says so of the machine itself: lists lag. A node without one has nothing to be adopted."""
        from cloud_controller.clouds.mycloud.provider_ids import machine_in

        if not (given := node["spec"].get("providerID")):
            return False
        try:
            machine = self._client.get(self.collection, machine_in("spec.providerID of the node", given))
        except NotFound:
            return True
        return machine["state"] in _GONE

    def _wait_until_gone(self, id: str) -> None:
        # A terminated machine stays listed for an hour.
        self._client.wait_for_state(self.collection, id, {"terminated"}, self.deadline)


def _problem(field: Input, value: Any) -> Problem:
    if isinstance(value, Unknown):
        return None
    if value is None:
        return "is missing" if field.default is None else None
    return field.problem(value)


def _value(field: Input, properties: Properties) -> Any:
    """The input's value; an unknown equals nothing, so it counts as changed."""
    value = properties.get(field.name)
    return field.default if value is None else value

"""Load balancers: creation, changes and deletion, inside one transaction of the store.

Each change that the data plane must apply raises the record's generation and makes it `updating`; the data plane's
report of that generation makes it `available` or `failed`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address, ip_network

from local.mycloud import quotas
from local.mycloud.errors import ApiError, Conflict, InvalidParameter, NotFound
from local.mycloud.models.balancing import (
    Backend,
    BackendKey,
    BackendResult,
    BackendSet,
    CreateLoadBalancer,
    HealthCheck,
    Listener,
    LoadBalancer,
    LoadBalancerRecord,
    PutBackendSet,
    PutListener,
    UpdateLoadBalancer,
)
from local.mycloud.models.common import State, now
from local.mycloud.models.compute import MachineRecord
from local.mycloud.models.networking import NetworkRecord
from local.mycloud.networking import free_host
from local.mycloud.schema import new_id
from local.mycloud.store import Session


def create_load_balancer(session: Session, request: CreateLoadBalancer, first_port: int) -> LoadBalancerRecord:
    """A load balancer with the next free address of its network. `first_port`: the lowest that may be bound."""
    if made := session.made_with(LoadBalancerRecord, request):
        return made
    quotas.require(session, "load_balancers", session.count(LoadBalancerRecord))
    network = session.referenced(NetworkRecord, request.network_id, "network_id")
    address, network.next_lb_host = free_host(network.load_balancer_cidr, network.next_lb_host, session.is_in_use)
    balancer = LoadBalancerRecord(
        id=new_id(LoadBalancerRecord),
        name=request.name,
        tags=request.tags,
        state=State.CREATING,
        created_at=now(),
        network_id=network.id,
        address=address,
        scheme=request.scheme,
        source_ranges=request.source_ranges,
        listeners=request.listeners,
        backend_sets=request.backend_sets,
    )
    _validate(session, balancer, None, first_port)
    session.save(network)
    session.add(balancer)
    session.store_token(balancer, request)
    return balancer


def update_load_balancer(session: Session, id: str, request: UpdateLoadBalancer, first_port: int) -> LoadBalancerRecord:
    """Change name and tags, and replace the source ranges, listeners and backend sets in the request."""
    balancer, before = _changeable(session, id)
    balancer.name = balancer.name if request.name is None else request.name
    balancer.tags = balancer.tags if request.tags is None else request.tags
    balancer.source_ranges = balancer.source_ranges if request.source_ranges is None else request.source_ranges
    balancer.listeners = balancer.listeners if request.listeners is None else request.listeners
    balancer.backend_sets = balancer.backend_sets if request.backend_sets is None else request.backend_sets
    return _finish(session, balancer, before, first_port)


def delete_load_balancer(session: Session, id: str) -> LoadBalancerRecord:
    """Begin the deletion; the record goes when the data plane has closed its listeners."""
    balancer = session.get(LoadBalancerRecord, id)
    if balancer.state != State.DELETING:
        balancer.state = State.DELETING
        balancer.generation += 1
        session.save(balancer)
    return balancer


def put_listener(
    session: Session, id: str, protocol: str, port: int, request: PutListener, first_port: int
) -> LoadBalancerRecord:
    """Create the listener, or change it in place."""
    balancer, before = _changeable(session, id)
    listener = Listener.model_validate({"protocol": protocol, "port": port, **request.model_dump()})
    for index, present in enumerate(balancer.listeners):
        if (present.protocol, present.port) == (protocol, port):
            balancer.listeners[index] = listener
            break
    else:
        balancer.listeners.append(listener)
    return _finish(session, balancer, before, first_port)


def delete_listener(session: Session, id: str, protocol: str, port: int, first_port: int) -> LoadBalancerRecord:
    """Remove the listener."""
    balancer, before = _changeable(session, id)
    rest = [each for each in balancer.listeners if (each.protocol, each.port) != (protocol, port)]
    if len(rest) == len(balancer.listeners):
        raise NotFound(f"load balancer {id} has no listener {protocol} {port}")
    balancer.listeners = rest
    return _finish(session, balancer, before, first_port)


def put_backend_set(
    session: Session, id: str, name: str, request: PutBackendSet, first_port: int
) -> LoadBalancerRecord:
    """Create the backend set, or change it; without `backends` it keeps the present ones."""
    balancer, before = _changeable(session, id)
    present = next((each for each in balancer.backend_sets if each.name == name), None)
    kept = present.backends if present else []
    backends = kept if request.backends is None else request.backends
    changed = BackendSet.model_validate({**dict(request), "name": name, "backends": backends})
    if present is None:
        balancer.backend_sets.append(changed)
    else:
        balancer.backend_sets[balancer.backend_sets.index(present)] = changed
    return _finish(session, balancer, before, first_port)


def delete_backend_set(session: Session, id: str, name: str, first_port: int) -> LoadBalancerRecord:
    """Remove the backend set; raises `Conflict` while a listener uses it."""
    balancer, before = _changeable(session, id)
    _backend_set(balancer, name)
    users = [f"{each.protocol} {each.port}" for each in balancer.listeners if each.backend_set == name]
    if users:
        raise Conflict(f"backend set {name!r} of {id} is used by listener {', '.join(users)}")
    balancer.backend_sets = [each for each in balancer.backend_sets if each.name != name]
    return _finish(session, balancer, before, first_port)


def register_backends(
    session: Session, id: str, name: str, backends: Sequence[Backend], first_port: int
) -> list[BackendResult]:
    """Add each backend, or change the weight of an existing one; or return why not."""
    balancer, before = _changeable(session, id)
    backend_set = _backend_set(balancer, name)
    members = {_key(backend): backend for backend in backend_set.backends}
    results = []
    for backend in backends:
        result = BackendResult(address=backend.address, port=backend.port)
        try:
            _require_machine(session, balancer, backend, "backends")
            members[_key(backend)] = backend
        except ApiError as error:
            result.error = error.detail
        results.append(result)
    backend_set.backends = list(members.values())
    _finish(session, balancer, before, first_port)
    return results


def deregister_backends(
    session: Session, id: str, name: str, keys: Sequence[BackendKey], first_port: int
) -> list[BackendResult]:
    """Remove each backend, or report that it did not exist."""
    balancer, before = _changeable(session, id)
    backend_set = _backend_set(balancer, name)
    members = {_key(backend): backend for backend in backend_set.backends}
    results = []
    for key in keys:
        result = BackendResult(address=key.address, port=key.port)
        if members.pop(_key(key), None) is None:
            missing = NotFound(f"backend set {name!r} of {id} has no backend {key.address}:{key.port}")
            result.error = missing.detail
        results.append(result)
    backend_set.backends = list(members.values())
    _finish(session, balancer, before, first_port)
    return results


def public(record: LoadBalancerRecord) -> LoadBalancer:
    """The load balancer with every health check completed, as answers and the data plane have it."""
    udp = {listener.backend_set for listener in record.listeners if listener.protocol == "UDP"}
    sets = [
        each.model_copy(update={"health_check": HealthCheck(protocol="NONE" if each.name in udp else "TCP")})
        if each.health_check is None
        else each
        for each in record.backend_sets
    ]
    return LoadBalancer.model_validate({**dict(record), "backend_sets": sets})


def carried_out(session: Session, id: str, generation: int, failures: Sequence[str], closed: bool) -> None:
    """Store the data plane's report: it has applied `generation`, or failed, or closed everything."""
    balancer = session.find(LoadBalancerRecord, id)
    if balancer is None:
        return
    if balancer.state == State.DELETING:
        if closed:
            session.remove(id)
        return
    if generation < balancer.generation:
        return
    state = State.FAILED if failures else State.AVAILABLE
    reason = "; ".join(failures) or None
    if (balancer.observed, balancer.state, balancer.state_reason) != (generation, state, reason):
        balancer.observed, balancer.state, balancer.state_reason = generation, state, reason
        session.save(balancer)


def _changeable(session: Session, id: str) -> tuple[LoadBalancerRecord, LoadBalancerRecord]:
    balancer = session.get(LoadBalancerRecord, id)
    if balancer.state == State.DELETING:
        raise Conflict(f"load balancer {id} is being deleted")
    # Listeners and backends are replaced, never changed, so they need no copies: there may be thousands.
    sets = [each.model_copy() for each in balancer.backend_sets]
    return balancer, balancer.model_copy(update={"listeners": [*balancer.listeners], "backend_sets": sets})


def _finish(
    session: Session, balancer: LoadBalancerRecord, before: LoadBalancerRecord, first_port: int
) -> LoadBalancerRecord:
    _validate(session, balancer, before, first_port)
    listeners, others = _orders(balancer)
    listeners_before, others_before = _orders(before)
    if (listeners, others) != (listeners_before, others_before):
        balancer.generation += 1
        # Nothing else needs a new socket: the new address can be used at once.
        if listeners != listeners_before and balancer.state != State.CREATING:
            balancer.state, balancer.state_reason = State.UPDATING, None
    if balancer != before:
        session.save(balancer)
    return balancer


def _orders(balancer: LoadBalancerRecord) -> tuple[list[Listener], tuple[list[str], list[BackendSet]]]:
    """What the data plane has to apply: everything except name and tags. Listeners apart from the rest."""
    listeners = [each.model_copy(update={"tags": {}}) for each in balancer.listeners]
    sets = [each.model_copy(update={"tags": {}}) for each in balancer.backend_sets]
    return listeners, (balancer.source_ranges, sets)


def _validate(
    session: Session, balancer: LoadBalancerRecord, before: LoadBalancerRecord | None, first_port: int
) -> None:
    used = len(before.listeners) if before else 0
    adding = len(balancer.listeners) - used
    # A rejected one must not have an id yet, and the same request must get the same message.
    of = f"load balancer {balancer.id}" if before else None
    quotas.require(session, "listeners_per_load_balancer", used, adding, of=of)
    sets = [each.name for each in balancer.backend_sets]
    _require_unique(sets, "backend_sets", "name")
    _require_unique([f"{each.protocol} {each.port}" for each in balancer.listeners], "listeners", "protocol and port")
    for index, listener in enumerate(balancer.listeners):
        if listener.backend_set not in sets:
            raise InvalidParameter(
                f"listener {listener.protocol} {listener.port} names a backend set that does not exist: "
                f"{listener.backend_set!r}",
                field=f"listeners.{index}.backend_set",
                allowed=", ".join(sets) or None,
            )
        if listener.port < first_port:
            raise InvalidParameter(
                f"port {listener.port} is below {first_port}; the user who runs this site may not bind such ports",
                field="port",
                allowed=f"{first_port}-65535",
            )
    known = {
        (each.name, *_key(backend)): backend.machine_id
        for each in (before.backend_sets if before else [])
        for backend in each.backends
    }
    for backend_set in balancer.backend_sets:
        field = f"backend_sets.{backend_set.name}.backends"
        _require_unique([f"{each.address}:{each.port}" for each in backend_set.backends], field, "address and port")
        for backend in backend_set.backends:
            # An accepted backend may stay when its machine is gone: health checks exclude it.
            if known.get((backend_set.name, *_key(backend))) != backend.machine_id:
                _require_machine(session, balancer, backend, field)


def _require_machine(session: Session, balancer: LoadBalancerRecord, backend: Backend, field: str) -> None:
    machine = session.find(MachineRecord, backend.machine_id)
    if machine is None or machine.network_id != balancer.network_id or machine.state == State.TERMINATED:
        raise InvalidParameter(f"network {balancer.network_id} has no machine {backend.machine_id!r}", field=field)
    if backend.address in machine.private_ips:
        return
    network = session.get(NetworkRecord, balancer.network_id)
    routed = session.destinations(network.route_table_id, machine.id)
    if not any(ip_address(backend.address) in ip_network(cidr) for cidr in routed):
        raise InvalidParameter(
            f"{backend.address} is not an address of machine {machine.id}, and no route to the machine contains it",
            field=field,
            allowed=", ".join([*machine.private_ips, *routed]),
        )


def _require_unique(values: Sequence[str], field: str, what: str) -> None:
    doubled = sorted(value for value, count in Counter(values).items() if count > 1)
    if doubled:
        raise InvalidParameter(f"two {field} have the same {what}: {doubled[0]}", field=field)


def _backend_set(balancer: LoadBalancerRecord, name: str) -> BackendSet:
    for each in balancer.backend_sets:
        if each.name == name:
            return each
    raise NotFound(f"load balancer {balancer.id} has no backend set {name!r}")


def _key(backend: BackendKey) -> tuple[str, int]:
    return backend.address, backend.port

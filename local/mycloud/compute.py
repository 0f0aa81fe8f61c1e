"""Clusters and machines: creation, changes and deletion, inside one transaction of the store.

Nothing here touches a process: the lifecycle carries out the records.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, cycle, islice

from local.mycloud.errors import Conflict, InvalidParameter
from local.mycloud.filters import Filter
from local.mycloud.models.common import REGION, State, Update, now
from local.mycloud.models.compute import Cluster, CreateCluster, CreateMachine, MachineRecord, SimulateMachines
from local.mycloud.models.networking import NetworkRecord, SubnetRecord
from local.mycloud.networking import LIVING, free_host, ipv6_address
from local.mycloud.schema import new_id
from local.mycloud.store import Session, update_object


def create_cluster(session: Session, request: CreateCluster) -> Cluster:
    """A cluster in a network without one: its pod and service ranges are the network's."""
    if made := session.made_with(Cluster, request):
        return made
    network = session.referenced(NetworkRecord, request.network_id, "network_id")
    for other in session.query(Cluster, Filter(network_id=network.id)):
        raise Conflict(f"network {network.id} already has a cluster, {other.id}", field="network_id")
    cluster = Cluster(
        id=new_id(Cluster),
        name=request.name,
        tags=request.tags,
        state=State.CREATING,
        created_at=now(),
        network_id=network.id,
    )
    session.add(cluster)
    session.store_token(cluster, request)
    return cluster


def delete_cluster(session: Session, id: str) -> Cluster:
    """Begin the deletion; raises `Conflict` while machines belong to it."""
    cluster = session.get(Cluster, id)
    machines = session.query(MachineRecord, Filter(cluster_id=id, states=LIVING))
    if machines:
        raise Conflict(f"cluster {id} still has machines {', '.join(m.id for m in machines[:3])}")
    cluster.state = State.DELETING
    session.save(cluster)
    return cluster


def create_machine(session: Session, request: CreateMachine) -> MachineRecord:
    """A machine with the next free address of its subnet."""
    if made := session.made_with(MachineRecord, request):
        return made
    subnet = session.referenced(SubnetRecord, request.subnet_id, "subnet_id")
    cluster = session.referenced(Cluster, request.cluster_id, "cluster_id")
    _require_same_network(cluster, subnet)
    _require_free_name(session, subnet.network_id, request.name)
    network = session.get(NetworkRecord, subnet.network_id)
    machine = _new_machine(session, request, subnet, network)
    session.save(subnet)
    session.add(machine)
    session.store_token(machine, request)
    return machine


def simulate_machines(session: Session, request: SimulateMachines) -> None:
    """Machines that are running at once and have no process; their names use the lowest free numbers."""
    cluster = session.referenced(Cluster, request.cluster_id, "cluster_id")
    subnets = [session.referenced(SubnetRecord, each, "subnet_ids") for each in request.subnet_ids]
    for subnet in subnets:
        _require_same_network(cluster, subnet)
    network = session.get(NetworkRecord, cluster.network_id)
    names = _free_names(session, cluster.network_id, request.name_prefix)
    for name, subnet in islice(zip(names, cycle(subnets), strict=False), request.count):
        wanted = CreateMachine(
            name=name,
            tags=request.tags,
            subnet_id=subnet.id,
            cluster_id=cluster.id,
            type="m1.small",
            role="worker",
        )
        machine = _new_machine(session, wanted, subnet, network)
        machine.simulated = True
        session.add(_settled(machine))
    for subnet in subnets:
        session.save(subnet)


def end_simulated_machines(session: Session) -> None:
    """Terminate every simulated machine."""
    for machine in session.query(MachineRecord, Filter(simulated=True, states=LIVING)):
        terminate_machine(session, machine.id)


def update_machine(session: Session, id: str, request: Update) -> MachineRecord:
    """Change the tags; the name is the node's name, which cannot change while the machine lives."""
    machine = session.get(MachineRecord, id)
    if request.name not in (None, machine.name):
        raise InvalidParameter(f"the name of machine {id} is its node's name and cannot change", field="name")
    return update_object(session, machine, request)


def start_machine(session: Session, id: str) -> MachineRecord:
    """Start a stopped machine; a running or booting one is left as it is."""
    machine = _living_machine(session, id)
    if machine.intent != "running" or machine.state in (State.STOPPED, State.FAILED):
        machine.intent = "running"
        if machine.state in (State.STOPPED, State.FAILED):
            machine.state, machine.state_reason = State.CREATING, None
        session.save(_settled(machine))
    return machine


def stop_machine(session: Session, id: str) -> MachineRecord:
    """Shut a machine down; it keeps its address and can be started again."""
    machine = _living_machine(session, id)
    if machine.state != State.STOPPED:
        machine.intent, machine.state, machine.state_reason = "stopped", State.STOPPING, None
        session.save(_settled(machine))
    return machine


def reboot_machine(session: Session, id: str) -> MachineRecord:
    """Shut a running machine down and boot it again; its state stays `running` meanwhile."""
    machine = _living_machine(session, id)
    if machine.state != State.RUNNING:
        raise Conflict(f"machine {id} is {machine.state.value}; only a running one can be rebooted")
    machine.reboot = True
    session.save(_settled(machine))
    return machine


def terminate_machine(session: Session, id: str) -> MachineRecord:
    """Begin the termination of a machine; a terminated one stays as it is."""
    machine = session.get(MachineRecord, id)
    if machine.intent != "terminated":
        machine.intent, machine.state, machine.state_reason = "terminated", State.STOPPING, "terminating"
        session.save(_settled(machine))
    return machine


def _new_machine(
    session: Session, request: CreateMachine, subnet: SubnetRecord, network: NetworkRecord
) -> MachineRecord:
    """The requested machine, with the subnet's next free address."""
    address, subnet.next_host = free_host(subnet.cidr, subnet.next_host, session.is_in_use)
    ipv6 = ipv6_address(network, address)
    return MachineRecord(
        id=new_id(MachineRecord),
        name=request.name,
        tags=request.tags,
        state=State.CREATING,
        created_at=now(),
        network_id=subnet.network_id,
        subnet_id=subnet.id,
        zone=subnet.zone,
        region=REGION,
        type=request.type,
        cluster_id=request.cluster_id,
        role=request.role,
        private_ips=[address],
        ipv6_addresses=[] if ipv6 is None else [ipv6],
        node_labels=request.node_labels,
        register_provider_id=request.register_provider_id,
    )


def _settled(machine: MachineRecord) -> MachineRecord:
    """A simulated machine reaches its intended state at once, because it has no process; another one waits."""
    if machine.simulated:
        machine.reboot = False
        machine.state, machine.state_reason = State(machine.intent), None
        if machine.state == State.TERMINATED:
            machine.terminated_at = now()
    return machine


def _living_machine(session: Session, id: str) -> MachineRecord:
    machine = session.get(MachineRecord, id)
    if machine.intent == "terminated":
        raise Conflict(f"machine {id} is {'terminated' if machine.state == State.TERMINATED else 'terminating'}")
    return machine


def _free_names(session: Session, network_id: str, prefix: str) -> Iterator[str]:
    living = Filter(network_id=network_id, states=LIVING)
    taken = {machine.name for machine in session.query(MachineRecord, living)}
    return (name for name in (f"{prefix}{number:05}" for number in count()) if name not in taken)


def _require_same_network(cluster: Cluster, subnet: SubnetRecord) -> None:
    if cluster.network_id != subnet.network_id:
        raise InvalidParameter(
            f"cluster {cluster.id} is in network {cluster.network_id}, subnet {subnet.id} in {subnet.network_id}",
            field="cluster_id",
        )


def _require_free_name(session: Session, network_id: str, name: str) -> None:
    for other in session.query(MachineRecord, Filter(network_id=network_id, name=name, states=LIVING)):
        raise Conflict(f"machine {other.id} of network {network_id} already has the name {name!r}", field="name")

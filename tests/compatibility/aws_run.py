"""What a controller leaves of each of the compared Services: one after the other, on a real API server and moto.

    python -m tests.compatibility.aws_run

has the peer do so and writes its results to aws_peer.json, beside this file; tests compare with that. It builds the
peer if need be.
"""

from __future__ import annotations

import json
import re

import moto

from benchmarks.aws import peer
from benchmarks.aws.account import Machine
from benchmarks.aws.cluster import Cluster, cluster
from benchmarks.aws.daemons import PEER, Who
from benchmarks.daemons import Daemon
from cloud_controller.kube import EVENTS, NODES, SERVICES, NotFoundError, Object
from tests.compatibility import aws_recorded
from tests.compatibility.aws_account import furnish, with_ids
from tests.compatibility.aws_left import Baseline, Json, baseline, found
from tests.compatibility.aws_services import CASES, Case, manifest
from tests.words import said

_DONE = "EnsuredLoadBalancer"
_REFUSED = "SyncLoadBalancerFailed"
# What each controller calls a load balancer, in its host and in tags that name it.
_HOST = re.compile(r"^[^.]+\.")
_NAME = re.compile(r"k8s-default-[0-9a-z]+-[0-9a-f]{10}")


def results(who: Who) -> dict[str, Json]:
    """What the controller leaves of each Service, by its name."""
    with cluster() as made:
        words = furnish(made, made.simulator.direct)
        before = baseline(made.account)
        with made.daemon(who, ["service"]) as daemon:
            return {case.name: _result(made, daemon, before, case, words) for case in CASES}


def node_results(who: Who) -> dict[str, Json]:
    """What the controller makes of a node in a private subnet, and of one in a public subnet."""
    with cluster() as made:
        kinds = {"node-private": False, "node-public": True}
        machines = {kind: made.add_nodes(1, initialised=False, public=public)[0] for kind, public in kinds.items()}
        with made.daemon(who, ["node"]) as daemon:
            daemon.until(made.all_initialised)
            daemon.rest()
        nodes = {kind: made.kube.get(NODES, machine.name) for kind, machine in machines.items()}
        return {kind: _node(node, machines[kind]) for kind, node in nodes.items()}


def record() -> None:
    """Write what the peer does."""
    versions = {
        "cloud-provider-aws": peer.CONTROLLER.version(),
        "grpc": peer.CONTROLLER.version("google.golang.org/grpc"),
        "moto": moto.__version__,
    }
    aws_recorded.write(versions, results(PEER) | node_results(PEER))


def _result(made: Cluster, daemon: Daemon, before: Baseline, case: Case, words: dict[str, str]) -> Json:
    wanted = with_ids(manifest(case), words)
    created = made.kube.create(SERVICES, wanted)
    uid = created["metadata"]["uid"]
    if case.left_to_others:
        daemon.rest()
    else:
        daemon.until(lambda: bool({_DONE, _REFUSED} & _events(made, uid).keys()))
    left = found(made.account, before)
    if case.ends_tls and case.name.startswith("classic-") and _DONE in _events(made, uid):
        # moto shows one protocol on both sides of such a listener, so ours makes it anew several times. On a busy
        # machine it may pause for longer than it takes to seem at rest while the listener is not there.
        daemon.rest()
        while not _listens(left := found(made.account, before), case):
            daemon.until(lambda: _listens(found(made.account, before), case))
            daemon.rest()
    if refused := _events(made, uid).get(_REFUSED):
        print(f"{case.name}: {refused}")  # pytest shows it where a test fails.
    service = made.kube.get(SERVICES, case.name, "default")
    result = {
        "refused": refused is not None,
        "status": [
            {key: _HOST.sub("NAME.", value) for key, value in each.items()}
            for each in service["status"]["loadBalancer"].get("ingress", [])
        ],
        **left,
    }
    made.kube.delete(SERVICES, case.name, "default")
    daemon.until(lambda: _is_gone(made, case.name))
    result["after_deletion"] = found(made.account, before)
    in_words = said(result, {uid: "UID", **{known: word for word, known in words.items()}})
    told: Json = json.loads(_NAME.sub("NAME", json.dumps(in_words)))
    return told


def _listens(left: Json, case: Case) -> bool:
    """Whether its load balancer has a listener for each port."""
    return all(len(each["listeners"]) == len(case.ports) for each in left["load_balancers"])


def _node(node: Object, machine: Machine) -> Json:
    public = [each["address"] for each in node["status"]["addresses"] if each["type"] == "ExternalIP"]
    told = {
        "refused": False,
        "labels": node["metadata"]["labels"],
        "taints": sorted(taint["key"] for taint in node["spec"].get("taints", [])),
        # Their order says which one is used.
        "addresses": {
            str(index): f"{each['type']} {each['address']}" for index, each in enumerate(node["status"]["addresses"])
        },
    }
    words = {machine.address: "INTERNAL", machine.name: "NAME"}
    for address in public:
        words |= {address: "EXTERNAL", f"ec2-{address.replace('.', '-')}.compute-1.amazonaws.com": "EXTERNAL-NAME"}
    in_words: Json = said(told, words)
    return in_words


def _events(made: Cluster, uid: str) -> dict[str, str]:
    """The messages of the Service's events, by reason."""
    events = made.kube.list(EVENTS, "default", field_selector=f"involvedObject.uid={uid}").items
    return {event["reason"]: event["message"] for event in events}


def _is_gone(made: Cluster, name: str) -> bool:
    try:
        made.kube.get(SERVICES, name, "default")
    except NotFoundError:
        return True
    return False


if __name__ == "__main__":
    record()

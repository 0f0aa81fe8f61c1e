"""What a pod's readiness gate waits for in a cloud, as a test sees it: the pod `web-0` of Service `default/web`."""

from __future__ import annotations

from dataclasses import replace

from cloud_controller.controllers.service.facts import facts_for
from cloud_controller.controllers.service.gate_plan import Verdict, judged, registration, view_of, with_waiting
from cloud_controller.controllers.service.rules import Rules, backends_of
from cloud_controller.kube import Object
from tests.cloud_controller.cluster import WEB
from tests.cloud_controller.load_balancing import Running, endpoint, endpoint_slice

UID = "uid-pod"


def unready_slice(node: str, address: str) -> Object:
    """The Service's slice with this one pod, which is ready but for its gate."""
    found = endpoint(address, node)
    found["conditions"]["ready"] = False
    found["targetRef"]["uid"] = UID
    return endpoint_slice(found)


def counted(running: Running) -> list[Object]:
    """The cluster's slices, in which the pod counts as ready."""
    return [*with_waiting([*running.cluster.objects["endpointslices"].values()], {UID})]


def verdict(running: Running, node: str, address: str) -> tuple[bool, str]:
    """Whether the pod's gate may open, and why, by the cloud as it is now."""
    load_balancers, service = running.cloud.load_balancers, running.cluster.service()
    rules = Rules(running.cloud.cluster_id, running.cloud.load_balancer_classes)
    slices = tuple(counted(running))
    backends = backends_of(running.cluster.objects["nodes"].values(), load_balancers.builder, rules)
    backends = replace(backends, slices=slices)
    facts = facts_for([service], {WEB: slices}, load_balancers, rules)
    view = view_of(service, running.observed(), backends, load_balancers.builder, facts, rules)
    pod = {"metadata": {"uid": UID}, "spec": {"nodeName": node}, "status": {"podIPs": [{"ip": address}]}}
    found = registration(pod, view)
    if not isinstance(found, Verdict):
        health = {each.load_balancer: load_balancers.health(each.load_balancer) for each in found}
        found = judged(found, health, 0.0, "web")
    return found.opens, found.reason

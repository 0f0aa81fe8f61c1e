"""Whatever happens to Services, nodes, the cloud and the controller itself: at rest the cloud is what it should be.

Random sequences against mycloud's real API, compared with `service_model`. Between two moments of rest anything may
be broken: calls fail or lose their answers, watches and lists are behind, the process dies after any write.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection
from contextlib import suppress
from copy import deepcopy
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from cloud_controller.cloud import CloudError
from cloud_controller.clouds.mycloud.cloud import MyCloud
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.service import controller as service_controller
from cloud_controller.controllers.service.controller import RESYNC, ServiceController, ServiceOptions
from cloud_controller.controllers.service.timing import NodeDebouncer, Polling
from cloud_controller.controllers.service.waits import Waits
from cloud_controller.kube import ENDPOINT_SLICES, NODES, SERVICES, key
from cloud_controller.load_balancers.sharing import SHARED_WITH_TAG
from cloud_controller.metrics import Metrics
from local.mycloud.models.common import State
from tests.clock import Clock
from tests.cloud_controller.clouds.mycloud import service_model as model
from tests.cloud_controller.clouds.mycloud.kubernetes_in_memory import (
    ApiServer,
    Crash,
    InMemoryInformer,
    StepQueue,
    Worker,
)
from tests.cloud_controller.clouds.mycloud.random_histories import (
    History,
    NewSite,
    kinds_of_faults,
    last_writes,
    numbers_of_faults,
    run_histories,
)
from tests.cloud_controller.guard import guard

if TYPE_CHECKING:
    from cloud_controller.kube import Object
    from tests.cloud_controller.clouds.conftest import Json

RESYNC_PERIOD = 300.0
LONG_ENOUGH = 1000.0
"""Seconds in which everything comes to rest: a few reads of everything, and the longest pause after failures."""

NAMES = ("web", "dns", "api")
PRESERVE = "preserve-on-delete"
SHARED = {SHARED_WITH_TAG: "any"}

which = st.integers(0, len(NAMES) - 1)
"""Which of the Services that there are."""
Request = tuple[list[model.Port], list[tuple[str, str]], str, list[tuple[int, bool]], int]
ports = st.lists(
    st.tuples(st.sampled_from(["TCP", "UDP"]), st.sampled_from([8080, 8081, 8082])), min_size=1, max_size=3, unique=True
)
settings_of_a_service = st.sampled_from(
    [
        ("listener-maxqps", "5"),
        ("listener-maxqps", "9"),
        ("scheme", "internal"),
        ("scheme", "internet-facing"),
        ("scheduler", "least_connections"),
        ("health-check-protocol", "HTTP"),
        ("health-check-protocol", "NONE"),
        ("health-check-port", "9999"),
        ("backend-type", "pod-ip"),
        (PRESERVE, "true"),
    ]
)
policies = st.sampled_from(["Cluster", "Local"])
pods = st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=5)
"""On which of the nodes each is, and whether it is ready."""
requests = st.tuples(ports, st.lists(settings_of_a_service, max_size=2), policies, pods, st.integers(0, 3))
"""What a new Service asks for."""
operations = st.sampled_from(
    [
        "*",
        "* /v1/load_balancers*",
        "GET /v1/load_balancers*",
        "POST /v1/load_balancers",
        "POST /v1/load_balancers/*",
        "PUT *",
        "PATCH *",
        "DELETE *",
    ]
)


class Process:
    """The controller manager, as far as Services are concerned."""

    def __init__(self, cloud: MyCloud, api: ApiServer, clock: Clock) -> None:
        self.cloud = cloud
        self.informers = [InMemoryInformer(api, resource) for resource in (SERVICES, NODES, ENDPOINT_SLICES)]
        self.queue = StepQueue(clock=clock)
        options = ServiceOptions(resync=RESYNC_PERIOD)
        self.safeguard = guard(api)
        services, nodes, slices = self.informers
        self.controller = ServiceController(
            api,
            cloud,
            services,
            nodes,
            slices,
            api,
            Metrics(),
            options,
            self.safeguard,
            InstanceSnapshot(cloud.instances),
        )
        self.controller._queue = self.queue
        self.controller._debouncer = NodeDebouncer(clock)
        self.controller._polling = Polling(clock)
        self.controller._reconciler._waits = Waits(clock)
        self.controller._reconciler._others = Polling(clock)
        self.worker = Worker(self.queue, clock, self.controller.handle)
        for informer in self.informers:
            informer.relist()
        self.queue.add(RESYNC)


def rule_about_a_service(**drawn: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
    """A rule that gets one of the Services that may still be changed."""

    def decorate(body: Callable[..., None]) -> Any:
        @functools.wraps(body)
        def about_one(self: World, which: int, **values: Any) -> None:
            changeable = self.changeable()
            body(self, changeable[which % len(changeable)], **values)

        make_rule: Any = rule
        return precondition(lambda self: bool(self.changeable()))(make_rule(which=which, **drawn)(about_one))

    return decorate


class World(History):
    """A site, an API server and a controller."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = self.site.cluster["id"]
        self.numbers = itertools.count(1)
        self.node_ports = itertools.count(30000)
        self.pod_ranges = ip_network(self.site.network["pod_cidr"]).subnets(new_prefix=24)
        self.ranges_of: dict[str, Any] = {}
        self.pods: dict[str, list[tuple[str, bool]]] = {}
        self.dead: set[str] = set()
        self.leaving: set[str] = set()
        """Services that leave something behind: they change nothing else before they have."""
        self.claims: dict[str, dict[model.Port, set[str]]] = {}
        """By shared load balancer and port: who wanted it since the last rest."""
        self.shared: dict[str, Json] = {}
        """What was on each load balancer that Services may share before they came, or stays after they went."""

    @initialize(nodes=st.lists(st.booleans(), max_size=3), services=st.lists(requests, min_size=1, max_size=3))
    def begin(self, nodes: list[bool], services: list[Request]) -> None:
        others = {"kubernetes.io/cluster": "c-other", "kubernetes.io/service-uid": "u", "kubernetes.io/service": "a/b"}
        half = {"kubernetes.io/cluster": self.cluster}
        foreign = [self._made_by_hand(f"foreign-{n}", tags) for n, tags in enumerate([{}, others, half])]
        edges = [self._made_by_hand(f"edge-{n}", {"team": "edge", **SHARED}) for n in range(2)]
        for lb, port, tags in [(edges[0], 9000, {"by": "hand"}), (edges[0], 9001, others), (foreign[1], 8080, {})]:
            path = f"load_balancers/{lb}"
            self.site.client.put(f"{path}/backend_sets/s-{port}", {"tags": tags})
            self.site.client.put(f"{path}/listeners/TCP/{port}", {"backend_set": f"s-{port}", "tags": tags})
        self.site.settle()
        self.foreign = {lb: self._seen()[lb] for lb in foreign}
        self.shared |= {lb: self._seen()[lb] for lb in edges}
        for ingress in nodes:
            self.a_node_comes(ingress)
        for request in services:
            self.a_service_is_created(request)
        self.start()

    def end(self) -> None:
        if hasattr(self, "process"):
            self.come_to_rest()

    # ----------------------------------------------------------------------------------------------------- Services

    @precondition(lambda self: len(self.services) < len(NAMES))
    @rule(request=requests)
    def a_service_is_created(self, request: Request) -> None:
        ports, annotations, policy, pods, where = request
        name = next(name for name in NAMES if f"default/{name}" not in self.services)
        service: Object = {
            "metadata": {
                "namespace": "default",
                "name": name,
                "annotations": {model.PREFIX + each: value for each, value in annotations},
            },
            "spec": {"type": "LoadBalancer", "ports": []},
            "status": {},
        }
        self._set_ports(service, ports)
        self._set_policy(service, policy)
        self.api.put(SERVICES, service)
        self._place_pods(name, pods)
        self._share(self.services[key(service)], where)

    @rule_about_a_service(ports=ports)
    def its_ports_change(self, service: Object, ports: list[model.Port]) -> None:
        lb, name = model.named(service), service["metadata"]["name"]
        if lb is None or self._claim(service, lb, ports):
            self._change(service, lambda changed: self._set_ports(changed, ports))
            self._publish_endpoints(name)

    @rule_about_a_service(annotation=settings_of_a_service, present=st.booleans())
    def an_annotation_comes_or_goes(self, service: Object, annotation: tuple[str, str], present: bool) -> None:
        self._annotate(service, annotation[0], annotation[1] if present else None)

    @rule_about_a_service(policy=policies)
    def its_traffic_policy_changes(self, service: Object, policy: str) -> None:
        self._change(service, lambda changed: self._set_policy(changed, policy))

    @rule_about_a_service(
        fields=st.sampled_from(
            [
                {"sessionAffinity": "ClientIP"},
                {"sessionAffinity": "None"},
                {"loadBalancerSourceRanges": ["192.0.2.0/24", "10.0.0.0/8"]},
                {"loadBalancerSourceRanges": ["10.0.0.0/8"]},
                {"loadBalancerSourceRanges": []},
                {"internalTrafficPolicy": "Local"},
            ]
        )
    )
    def its_spec_changes(self, service: Object, fields: Json) -> None:
        if model.named(service) and fields.get("loadBalancerSourceRanges"):
            return  # An error on a shared load balancer.
        self._change(service, lambda changed: changed["spec"].update(fields))

    @rule_about_a_service(where=st.integers(0, 3))
    def it_moves_to_a_shared_load_balancer_or_back(self, service: Object, where: int) -> None:
        self._share(service, where)

    @rule_about_a_service(kind=st.sampled_from(["ClusterIP", "of another class", "LoadBalancer", "of our class"]))
    def its_type_changes(self, service: Object, kind: str) -> None:
        classes = {"of another class": "example.com/other", "of our class": model.OUR_CLASS}
        serving = kind in ("LoadBalancer", "of our class")
        lb = model.named(service)
        if serving and lb and not self._claim(service, lb, _ports(service)):
            return
        if not serving:
            self._preserve_if_asked(service)
        fields = {
            "type": "ClusterIP" if kind == "ClusterIP" else "LoadBalancer",
            "loadBalancerClass": classes.get(kind),
        }
        self._change(service, lambda changed: changed["spec"].update(fields))

    @rule_about_a_service(preserve=st.booleans())
    def it_is_deleted(self, service: Object, preserve: bool) -> None:
        self._annotate(service, PRESERVE, "true" if preserve else None)
        self._preserve_if_asked(self.services[key(service)])
        self.api.remove(SERVICES, key(service))
        self._publish_endpoints(service["metadata"]["name"])

    @rule_about_a_service()
    def its_finalizer_is_taken_off_and_another_gets_its_name(self, service: Object) -> None:
        self._annotate(service, PRESERVE, None)
        self._change(service, lambda changed: changed["metadata"].pop("finalizers", None))
        again = deepcopy(self.services[key(service)])
        self.api.remove(SERVICES, key(service))
        again["metadata"] = {each: again["metadata"][each] for each in ("namespace", "name", "annotations")}
        # What the old one had of a shared load balancer is in the new one's way until it is removed.
        again["metadata"]["annotations"].pop(f"{model.PREFIX}id", None)
        again["status"] = {}
        self.api.put(SERVICES, again)

    @rule_about_a_service(where=pods)
    def its_pods_move(self, service: Object, where: list[tuple[int, bool]]) -> None:
        self._place_pods(service["metadata"]["name"], where)

    # -------------------------------------------------------------------------------------------------------- nodes

    @rule(ingress=st.booleans())
    def a_node_comes(self, ingress: bool) -> None:
        if len(self.nodes) >= 4:
            return
        machine = self.site.machine(f"node-{next(self.numbers)}")
        self.ranges_of[machine["name"]] = (next(self.pod_ranges), machine["id"])
        self._route(machine["name"], "batch_create")
        node: Object = {
            "metadata": {"name": machine["name"], "annotations": {model.INGRESS: "true"} if ingress else {}},
            "spec": {"providerID": provider_id(machine), "podCIDRs": [str(self.ranges_of[machine["name"]][0])]},
            "status": {"addresses": [{"type": "InternalIP", "address": machine["private_ips"][0]}]},
        }
        self.api.put(NODES, node)

    @precondition(lambda self: len(self.nodes) > 0)
    @rule(which=st.integers(0, 3), dies_first=st.booleans())
    def a_node_goes(self, which: int, dies_first: bool) -> None:
        name = self._node(which)
        if name not in self.dead:
            _, machine = self.ranges_of[name]
            self.site.client.delete("machines", machine)
            self.site.set_machine_state(machine, State.TERMINATED)
        if dies_first:
            self.dead.add(name)
        else:
            self._forget_node(name)

    @precondition(lambda self: len(self.nodes) > 0)
    @rule(which=st.integers(0, 3), what=st.sampled_from(["excluded", "going", "ingress", "address"]))
    def a_node_changes(self, which: int, what: str) -> None:
        def change(node: Object) -> None:
            metadata, spec = node["metadata"], node["spec"]
            if what == "excluded":
                label = {"node.kubernetes.io/exclude-from-external-load-balancers": ""}
                metadata["labels"] = {} if metadata.get("labels") else label
            elif what == "going":
                taint = {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}
                spec["taints"] = [] if spec.get("taints") else [taint]
            elif what == "ingress":
                metadata["annotations"] = {} if metadata.get("annotations") else {model.INGRESS: "true"}
            else:  # A heartbeat: nothing that load balancers care for.
                metadata["heartbeat"] = next(self.numbers)

        self.api.change(NODES, self._node(which), change)

    # -------------------------------------------------------------------------------------------------------- cloud

    @rule_about_a_service(
        what=st.sampled_from(["delete", "rename", "fail", "listener", "limit", "backends", "scheduler", "more"])
    )
    def somebody_meddles_with_its_load_balancer(self, service: Object, what: str) -> None:
        uid = service["metadata"]["uid"]
        for lb in self.site.load_balancers():
            own = lb["tags"].get("kubernetes.io/service-uid") == uid
            listeners = [
                each for each in lb["listeners"] if own or each["tags"].get("kubernetes.io/service-uid") == uid
            ]
            with suppress(CloudError):  # It is being deleted already.
                self._meddle(lb, own, listeners, what)

    def _meddle(self, lb: Json, own: bool, listeners: list[Json], what: str) -> None:
        client, path = self.site.client, f"load_balancers/{lb['id']}"
        if own and what == "delete":
            client.delete_path(path)
        elif own and what == "rename":
            client.update("load_balancers", lb["id"], {"name": "renamed"})
        elif own and what == "fail":
            self.site.set_load_balancer_state(lb["id"], "failed", "nobody knows why")
        elif own and what == "more":
            client.put(f"{path}/backend_sets/by-hand", {})
            client.put(f"{path}/listeners/TCP/9999", {"backend_set": "by-hand"})
        for listener in listeners[:1]:
            at = f"{path}/listeners/{listener['protocol']}/{listener['port']}"
            pool = next(each for each in lb["backend_sets"] if each["name"] == listener["backend_set"])
            if what == "listener":
                client.delete_path(at)
            elif what == "limit":
                body = {each: listener[each] for each in ("backend_set", "tags", "idle_timeout_seconds")}
                client.put(at, {**body, "max_qps": 77})
            elif what == "scheduler":
                body = {each: value for each, value in pool.items() if each not in ("name", "backends")}
                client.put(f"{path}/backend_sets/{pool['name']}", {**body, "scheduler": "least_connections"})
            elif what == "backends":
                body = {each: value for each, value in pool.items() if each != "name"}
                client.put(f"{path}/backend_sets/{pool['name']}", {**body, "backends": []})

    # Each throttled call waits for 20 seconds, and all of them must be over within LONG_ENOUGH.
    @precondition(lambda self: sum(count for _, _, count in self.faults) < 32)
    @rule(operation=operations, kind=kinds_of_faults, count=numbers_of_faults)
    def the_next_calls_fail(self, operation: str, kind: str, count: int) -> None:
        self.faults.append((operation, kind, count))

    # A load balancer that no list shows for as long as its Service goes is deleted as an orphan later, not preserved.
    @precondition(lambda self: not self.leaving)
    @rule()
    def lists_are_behind(self) -> None:
        self.site.set_lag(3600)

    # ---------------------------------------------------------------------------------- the process and its API server

    @rule()
    def start(self) -> None:
        self.process = Process(self.new_cloud(), self.api, self.clock)

    @rule(held=st.sampled_from([0, 1, 2]))
    def a_watch_falls_behind(self, held: int) -> None:
        self.process.informers[held].held = True

    @rule(relist=st.booleans())
    def the_watches_catch_up(self, relist: bool) -> None:
        for informer in self.process.informers:
            informer.relist() if relist else informer.resume()

    @rule(seconds=st.sampled_from([0.0, 2.0, 30.0, RESYNC_PERIOD]), last_write=last_writes)
    def time_passes(self, seconds: float, last_write: int | None) -> None:
        self.writes_left.count = last_write
        self._work(seconds)

    @rule(last_write=last_writes)
    def come_to_rest(self, last_write: int | None = None) -> None:
        self._mend_the_world()
        self.writes_left.count = last_write
        self._work(LONG_ENOUGH)
        self._confirm()
        self.leaving.clear()
        assert self._ours() == self._expected()
        assert {lb: self._seen().get(lb) for lb in self.foreign} == self.foreign
        self._check_services()
        self._check_that_nothing_is_left_to_do()
        for lb in self.shared:
            self.claims[lb] = {}
            for service in self.services.values():
                if model.is_served(service) and model.named(service) == lb:
                    for port in _ports(service):
                        self._claimed(lb, port).add(service["metadata"]["uid"])

    # ------------------------------------------------------------------------------------------------------- at rest

    def _work(self, seconds: float) -> None:
        with self.faulty():
            try:
                self.process.worker.run(seconds, self.site.settle)
            except Crash:
                self.start()
                self._work(seconds)

    def _confirm(self) -> None:
        """What is left of Services that vanished waits for an administrator, who finds it in order."""
        while held := self.process.safeguard.held():
            self.api.confirm_all(self.process.safeguard)
            self.process.controller.confirmed({action.target for action in held})
            self._work(LONG_ENOUGH)

    def _mend_the_world(self) -> None:
        self.site.set_lag(0)
        for name in [*self.dead]:
            self._forget_node(name)  # What the node lifecycle controller does.
        for lb in self.site.load_balancers():
            if lb["state"] == "failed":
                self.site.set_load_balancer_state(lb["id"], "updating")
        self.the_watches_catch_up(relist=False)

    def _ours(self) -> dict[str, Json]:
        """What the cloud has, foreign load balancers aside; by id, those of a Service by its UID."""
        found: dict[str, Json] = {}
        for lb_id, lb in self._seen().items():
            if lb_id not in self.foreign:
                name = lb_id if lb_id in self.shared else str(lb["tags"].get("kubernetes.io/service-uid"))
                assert name not in found, f"two load balancers of {name}"
                found[name] = lb
        return found

    def _expected(self) -> dict[str, Json]:
        expected = deepcopy(self.shared)
        for service in self.services.values():
            if not model.is_served(service):
                continue
            lb = model.named(service)
            if lb is None:
                expected[service["metadata"]["uid"]] = self._own(service)
            else:
                expected[lb]["listeners"] |= self._parts(service)
        return expected

    def _own(self, service: Object) -> Json:
        return model.own_load_balancer(self.cluster, service, *self._around(service))

    def _parts(self, service: Object) -> dict[model.Port, Json]:
        return model.listeners(service, *self._around(service), model.tags(self.cluster, service))

    def _around(self, service: Object) -> tuple[list[Object], list[Object]]:
        slices = self.api.objects(ENDPOINT_SLICES)
        name = f"default/{service['metadata']['name']}-1"
        own = [slices[name]] if name in slices else []
        return model.serving(service, [*self.nodes.values()], own, self._machines_behind(service)), own

    def _machines_behind(self, service: Object) -> set[str]:
        uid = service["metadata"]["uid"]
        return {
            machine
            for lb in self._seen().values()
            for listener in lb["listeners"].values()
            if uid in (lb["tags"].get("kubernetes.io/service-uid"), listener["tags"].get("kubernetes.io/service-uid"))
            for machine, _, _ in listener["backends"]
        }

    def _check_services(self) -> None:
        seen = {lb["id"]: lb for lb in self.site.load_balancers()}
        of_uid = {lb["tags"].get("kubernetes.io/service-uid"): lb["id"] for lb in seen.values()}
        for service in self.services.values():
            metadata, served = service["metadata"], model.is_served(service)
            assert "deletionTimestamp" not in metadata, "its finalizer is stuck"
            if served or service["spec"]["type"] == "ClusterIP":
                assert (model.FINALIZER in metadata.get("finalizers", [])) == served
                lb = seen[model.named(service) or of_uid[metadata["uid"]]] if served else None
                expected = [{"ip": lb["address"], "ipMode": "Proxy"}] if lb else []
                assert (service["status"].get("loadBalancer") or {}).get("ingress", []) == expected

    def _check_that_nothing_is_left_to_do(self) -> None:
        before = (self.site.writes(), self.api.writes)
        for each in (RESYNC, *self.services):
            self.process.controller.handle(each)
        plan = service_controller.plan(
            service_controller.observe(self.api, self.process.cloud, ServiceOptions()), ServiceOptions()
        )
        assert [str(action) for action in plan.changes] == []
        assert (self.site.writes(), self.api.writes) == before

    # ------------------------------------------------------------------------------------------------------- helpers

    @property
    def services(self) -> dict[str, Object]:
        return self.api.objects(SERVICES)

    @property
    def nodes(self) -> dict[str, Object]:
        return self.api.objects(NODES)

    def _seen(self) -> dict[str, Json]:
        return {lb["id"]: model.seen(lb) for lb in self.site.load_balancers()}

    def _tags(self, lb: str) -> Json:
        return dict(self.site.client.get("load_balancers", lb)["tags"])

    def _made_by_hand(self, name: str, tags: Json) -> str:
        body = {"name": name, "network_id": self.site.network["id"], "tags": tags}
        return str(self.site.client.create("load_balancers", body)["id"])

    def changeable(self) -> list[Object]:
        """The Services that somebody may still change."""
        return [
            service
            for _, service in sorted(self.services.items())
            if service["metadata"]["name"] not in self.leaving and not service["metadata"].get("deletionTimestamp")
        ]

    def _change(self, service: Object, change: Callable[[Object], Any]) -> None:
        self.api.change(SERVICES, key(service), change)

    def _annotate(self, service: Object, annotation: str, value: str | None) -> None:
        if annotation == PRESERVE and value and not model.is_served(service):
            self.come_to_rest()  # Else it depends on the moment what there still is to preserve.

        def change(changed: Object) -> None:
            texts = changed["metadata"]["annotations"]
            texts.pop(model.PREFIX + annotation, None)
            if value is not None:
                texts[model.PREFIX + annotation] = value

        self._change(service, change)

    def _set_ports(self, service: Object, ports: Collection[model.Port]) -> None:
        """As the API server does: a port that stays keeps its node port."""
        present = {(port["protocol"], port["port"]): port for port in service["spec"]["ports"]}
        service["spec"]["ports"] = [
            present.get((protocol, port))
            or {
                "name": f"{protocol}-{port}".lower(),
                "protocol": protocol,
                "port": port,
                "targetPort": port + 1000,
                "nodePort": next(self.node_ports),
            }
            for protocol, port in ports
        ]

    def _set_policy(self, service: Object, policy: str) -> None:
        spec = service["spec"]
        spec["externalTrafficPolicy"] = policy
        if policy == "Local":
            spec["healthCheckNodePort"] = spec.get("healthCheckNodePort") or next(self.node_ports)
        else:
            spec.pop("healthCheckNodePort", None)

    def _share(self, service: Object, where: int) -> None:
        places = [None, *sorted(self.shared)]
        lb = places[where % len(places)]
        if lb is None or self._claim(service, lb, _ports(service)):
            self._change(service, lambda changed: changed["spec"].pop("loadBalancerSourceRanges", None))
            self._annotate(self.services[key(service)], "id", lb)

    def _place_pods(self, name: str, where: list[tuple[int, bool]]) -> None:
        nodes = sorted(self.nodes)
        self.pods[name] = [(nodes[index % len(nodes)], ready) for index, ready in where] if nodes else []
        self._publish_endpoints(name)

    def _publish_endpoints(self, name: str) -> None:
        """What the endpoint slice controller does."""
        slice_key = f"default/{name}-1"
        service = self.services.get(f"default/{name}")
        if service is None:
            if slice_key in self.api.objects(ENDPOINT_SLICES):
                self.api.remove(ENDPOINT_SLICES, slice_key)
            return
        pods = [(node, ready) for node, ready in self.pods.get(name, []) if node in self.nodes]
        endpoints = [
            {
                "addresses": [str(self.ranges_of[node][0][number + 2])],
                "nodeName": node,
                "targetRef": {"kind": "Pod", "namespace": "default", "name": f"{name}-{number}"},
                "conditions": {"ready": ready},
            }
            for number, (node, ready) in enumerate(pods)
        ]
        metadata = {"namespace": "default", "name": f"{name}-1", "labels": {"kubernetes.io/service-name": name}}
        ports = [
            {"name": port["name"], "protocol": port["protocol"], "port": port["targetPort"]}
            for port in service["spec"]["ports"]
        ]
        published = {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}
        present = self.api.objects(ENDPOINT_SLICES).get(slice_key)
        if present is not None:
            metadata["uid"] = present["metadata"]["uid"]
        self.api.put(ENDPOINT_SLICES, published)

    def _node(self, which: int) -> str:
        present = sorted(self.nodes)
        return present[which % len(present)]

    def _forget_node(self, name: str) -> None:
        self.dead.discard(name)
        self._route(name, "batch_delete")
        self.api.remove(NODES, name)
        for service in NAMES:
            self._publish_endpoints(service)

    def _route(self, node: str, verb: str) -> None:
        cidr, machine = str(self.ranges_of[node][0]), self.ranges_of[node][1]
        route = {"destination_cidr": cidr, "next_hop_machine_id": machine}
        body: Json = {"routes": [route]} if verb == "batch_create" else {"destination_cidrs": [cidr]}
        self.site.client.post(f"route_tables/{self.site.network['route_table_id']}/routes:{verb}", body)

    def _claimed(self, lb: str, port: model.Port) -> set[str]:
        return self.claims.setdefault(lb, {}).setdefault(port, set())

    def _claim(self, service: Object, lb: str, ports: Collection[model.Port]) -> bool:
        """Whether the Service may have these ports there: nobody else had or wanted one since the last rest."""
        uid = service["metadata"]["uid"]
        taken = self.shared[lb]["listeners"].keys() | {
            port for port, uids in self.claims.get(lb, {}).items() if uids - {uid}
        }
        if taken & {*ports}:
            return False
        for port in ports:
            self._claimed(lb, port).add(uid)
        return True

    def _preserve_if_asked(self, service: Object) -> None:
        """What the Service has now will stay, as it is at this moment."""
        if model.annotation(service, PRESERVE) is None or not model.is_served(service):
            return
        self.come_to_rest()
        metadata = service["metadata"]
        self.leaving.add(metadata["name"])
        mark = {"cloud-controller/preserved-from": f"{self.cluster}/{metadata['namespace']}/{metadata['name']}"}
        lb = model.named(service)
        if lb is None:
            (lb,) = (
                each["id"]
                for each in self.site.load_balancers()
                if each["tags"].get("kubernetes.io/service-uid") == metadata["uid"]
            )
            # A person lets others use it.
            self.site.client.update("load_balancers", lb, {"tags": self._tags(lb) | SHARED})
            self.shared[lb] = {**self._own(service), "tags": mark | SHARED}
        else:
            parts = self._parts(service)
            self.shared[lb]["listeners"] |= {
                port: {**part, "tags": mark, "pool_tags": mark} for port, part in parts.items()
            }


def _ports(service: Object) -> list[model.Port]:
    return [(port["protocol"], port["port"]) for port in service["spec"]["ports"]]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_at_rest_the_cloud_is_what_services_and_nodes_ask_for(
    new_site: NewSite,
) -> None:
    run_histories(World, new_site, share=4)

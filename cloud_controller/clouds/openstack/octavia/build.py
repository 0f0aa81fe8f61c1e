"""The pure half of Octavia's load balancers: what Services and nodes become.

Each port becomes a listener and a pool. What Octavia cannot change of a pool (its protocol, the subnet of its members)
is part of the pool's name, so a change makes a new pool, to which the listener then forwards. The members are the node
port on every eligible node, with `externalTrafficPolicy: Local` on the nodes with ready pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.common.service_spec import affinity_timeout, ignored_affinity_timeout, is_local
from cloud_controller.clouds.common.source_ranges import EVERYBODY, source_ranges
from cloud_controller.clouds.openstack.octavia.annotations import CATALOGUE
from cloud_controller.clouds.openstack.octavia.named import named
from cloud_controller.clouds.openstack.octavia.node_rules import wanted_rules
from cloud_controller.clouds.openstack.octavia.options import LoadBalancerOptions, Networks
from cloud_controller.clouds.openstack.octavia.topology import Topology, choice_of
from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend, node_ipv4
from cloud_controller.load_balancers.catalogue import Catalogue, Value
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import (
    Built,
    HealthCheck,
    Ignored,
    Ingress,
    Listener,
    LoadBalancerModel,
    Object,
    Owner,
    Pool,
    Required,
    Reuse,
)
from cloud_controller.load_balancers.pods import Network
from cloud_controller.load_balancers.refusals import refuse
from cloud_controller.load_balancers.settings import Settings

HEAVIEST = 256
"""The highest weight that Octavia accepts."""
_CHECKS = {"TCP": "TCP", "UDP": "UDP-CONNECT", "SCTP": "SCTP"}
_TIMEOUTS = ("timeout_client_data", "timeout_member_connect", "timeout_member_data", "timeout_tcp_inspect")
_NAMING = ("floating_network_id", "floating_subnet_id", "floating_subnet_name", "floating_subnet_tags")


@dataclass(frozen=True, slots=True)
class OctaviaBuilder:
    """See `LoadBalancerBuilder`. The facts of its builds are the project's networks."""

    cluster_id: str
    options: LoadBalancerOptions

    @property
    def catalogue(self) -> Catalogue:
        """OpenStack's annotations."""
        return CATALOGUE

    def claims(self, _: Object) -> bool:
        """Always."""
        return True

    def follows_endpoints(self, service: Object) -> bool:
        """Whether members depend on where pods are."""
        return is_local(service["spec"])

    def drains(self, _: Object) -> bool:
        """No: Octavia closes the connections of a removed member."""
        return False

    def pod_ranges(self, *_: object) -> None:
        """None: members are node ports."""

    def backend(self, node: Object) -> NodeBackend | None:
        """The node as a backend; None if it is not initialised yet."""
        address = node_ipv4(node)
        if not address or not node["spec"].get("providerID"):
            return None
        name = node["metadata"]["name"]
        # Octavia knows a member only by its address: its name there is the node's.
        return NodeBackend(name, name, address, labels=node["metadata"].get("labels") or {})

    def foreign_name(self, _: Owner) -> None:
        """None: load balancers of other controllers are not taken over."""

    def build(self, service: Object, backends: Backends, facts: Fact[Topology]) -> Built:
        """The model of a Service with these backends. Raises InvalidConfiguration that names field or annotation."""
        metadata, spec = service["metadata"], service["spec"]
        settings = CATALOGUE.parse(metadata.get("annotations"))
        refuse(settings, spec, CATALOGUE.refusals)
        owner = Owner(self.cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])
        reused = settings.text("id")
        members = self.members(service, backends)
        parts = _Parts(self, spec, settings, owner, source_ranges(spec, settings), reused is not None)
        ports = spec.get("ports") or []
        pools = tuple(parts.pool(port, members[port["protocol"], port["port"]]) for port in ports)
        by_protocol = [(port["protocol"], pool) for port, pool in zip(ports, pools, strict=True)]
        attributes: dict[str, Value | None] = {}
        if not reused:
            attributes = self._attributes(spec, settings, facts) | self._access(by_protocol, facts)
        model = LoadBalancerModel(
            name=owner.load_balancer_name[:255],
            attributes=attributes,
            listeners=tuple(parts.listener(port) for port in ports),
            pools=pools,
            tags=owner.tags,
        )
        ignored = [*_ignored(service, settings, self.options)]
        if reused and self.options.manage_security_groups:
            field = f"annotation {CATALOGUE.by_argument['id'].name}"
            ignored.append(Ignored(field, reused, "only load balancers of one Service have a security group for nodes"))
        return Built(
            model,
            ignored=tuple(ignored),
            reuse=Reuse(reused, required=self._required(settings)) if reused else None,
            published=self._published(settings),
            named=tuple(named(settings, spec, attributes, facts)),
        )

    def members(self, service: Object, backends: Backends) -> Mapping[tuple[str, int], tuple[Member, ...]]:
        """The members of each listener, even if other settings are invalid."""
        spec = service["spec"]
        words = CATALOGUE.value(service["metadata"].get("annotations"), "node_selector")
        selector = words if isinstance(words, tuple) else self.options.node_selector
        labels = [word.partition("=") for word in selector]
        chosen = Backends(tuple(each for each in backends.nodes if _selected(each, labels)), backends.slices)
        found = {}
        for port in spec.get("ports") or []:
            if port.get("nodePort"):
                by = (
                    chosen.by_local_pods(port, port["nodePort"])
                    if is_local(spec)
                    else chosen.by_node_port(port["nodePort"])
                )
                found[port["protocol"], port["port"]] = tuple(m._replace(weight=min(m.weight, HEAVIEST)) for m in by)
        return found

    def networks(self, settings: Settings) -> list[tuple[str, Networks]]:
        """What annotations, class and cloud config say about networks, the most specific first, each with its field.

        Raises InvalidConfiguration for a class that the cloud config does not have."""
        given = {argument: settings.text(argument) or "" for argument in _NAMING}
        own = Networks(
            floating_network_id=given["floating_network_id"],
            floating_subnet_id=given["floating_subnet_id"],
            floating_subnet=given["floating_subnet_name"],
            floating_subnet_tags=given["floating_subnet_tags"],
            network_id=settings.text("network_id") or "",
            subnet_id=settings.text("subnet_id") or "",
            member_subnet_id=settings.text("member_subnet_id") or "",
        )
        subnet = next((each for each in _NAMING[1:] if given[each]), "floating_network_id")
        found = [(f"annotation {CATALOGUE.by_argument[subnet].name}", own)]
        if name := settings.text("lb_class"):
            classes = self.options.classes
            if name not in classes:
                field = f"annotation {CATALOGUE.by_argument['lb_class'].name}"
                raise InvalidConfiguration(
                    field, f"the cloud config has no class {name!r}", ", ".join(sorted(classes)) or "no annotation"
                )
            found.append((f'cloud config, [LoadBalancerClass "{name}"] floating subnet', classes[name]))
        return [*found, ("cloud config, [LoadBalancer] floating-network-id", self.options.networks)]

    def _attributes(
        self, spec: Mapping[str, Any], settings: Settings, facts: Fact[Topology]
    ) -> dict[str, Value | None]:
        levels, address = self.networks(settings), spec.get("loadBalancerIP") or ""
        # Of the administrator: a Service's author cannot open to the world what the cloud config keeps inside.
        internal = self.options.internal or settings.flag("internal")
        found: dict[str, Value | None] = {
            "internal": internal,
            "flavor": settings.text("flavor_id") or self.options.flavor_id,
            "availability_zone": settings.text("availability_zone") or self.options.availability_zone,
            "keep_floating_ip": settings.flag("keep_floating_ip"),
            "enabled": True,
            "floating_network": "",
            "floating_subnet": "",
        }
        if not internal:
            found |= _floating(levels, facts)
        # What nobody asks for is chosen when the load balancer is created, and then stays.
        vip = {"vip_port": settings.text("port_id")}
        if not vip["vip_port"]:
            vip["vip_subnet"] = next((each.subnet_id for _, each in levels if each.subnet_id), "")
            vip["vip_network"] = next((each.network_id for _, each in levels if each.network_id), "")
        if address:
            vip["vip_address" if internal else "load_balancer_ip"] = address
        return found | {key: value for key, value in vip.items() if value}

    def _required(self, settings: Settings) -> tuple[Required, ...]:
        """What the annotation says of a load balancer that is only used, so that no Service is exposed unawares."""
        if "internal" not in settings.given:
            return ()
        field, internal = f"annotation {CATALOGUE.by_argument['internal'].name}", settings.flag("internal")
        internal = internal or self.options.internal
        found = Required(field, "internal", internal)
        # A public one may still have to get its floating IP.
        return (found, Required(field, "floating_network", "")) if internal else (found,)

    def _access(self, pools: Sequence[tuple[str, Pool]], facts: Fact[Topology]) -> dict[str, Value | None]:
        """How nodes are opened to the load balancer."""
        if not self.options.manage_security_groups:
            return {"node_group": False}
        subnets: dict[str, str] = {}
        for _, pool in pools:
            named = str(pool.attributes["member_subnet"] or "")
            for member in pool.members:
                try:
                    subnets[member.address] = facts.value.range_of(named, member.address)
                except InvalidConfiguration:
                    if named:
                        raise
                    # It becomes no member either, which the change of members reports.
        return {
            "node_group": True,
            "node_rules": wanted_rules(pools, subnets),
            "open_nodes": tuple(sorted(subnets)),
        }

    def _published(self, settings: Settings) -> tuple[Ingress, ...]:
        name = settings.text("hostname")
        return (Ingress(hostname=name),) if name else ()


@dataclass(frozen=True, slots=True)
class _Parts:
    """The listeners and pools of one Service."""

    builder: OctaviaBuilder
    spec: Mapping[str, Any]
    settings: Settings
    owner: Owner
    ranges: Sequence[Network]
    reused: bool

    def listener(self, port: Mapping[str, Any]) -> Listener:
        """The listener of a port."""
        attributes: dict[str, Value | None] = {
            "protocol": self._protocol(port),
            "connection_limit": self.settings.integer("connection_limit"),
            "allowed_cidrs": () if EVERYBODY[4] in self.ranges else tuple(sorted(map(str, self.ranges))),
            "enabled": True,
            **{name: self.settings.integer(name) for name in _TIMEOUTS},
        }
        return Listener(port["protocol"], port["port"], self._name(port), attributes, self.owner.tags)

    def pool(self, port: Mapping[str, Any], members: tuple[Member, ...]) -> Pool:
        """The pool of a port."""
        attributes: dict[str, Value | None] = {
            "protocol": self._pool_protocol(port),
            "lb_algorithm": self.settings.text("lb_method") or self.builder.options.method,
            "session_persistence": "SOURCE_IP" if affinity_timeout(self.spec) else "",
            "member_subnet": self._member_subnet,
            "enabled": True,
        }
        return Pool(self._name(port), self._health_check(port), members, attributes, self.owner.tags)

    @property
    def _member_subnet(self) -> str:
        levels = self.builder.networks(self.settings)
        return next((each.member_subnet_id for _, each in levels if each.member_subnet_id), "")

    def _protocol(self, port: Mapping[str, Any]) -> str:
        http = port["protocol"] == "TCP" and self.settings.flag("x_forwarded_for")
        return "HTTP" if http else str(port["protocol"])

    def _pool_protocol(self, port: Mapping[str, Any]) -> str:
        version = self.settings.text("proxy_protocol")
        return {"true": "PROXY", "v1": "PROXY", "v2": "PROXYV2"}.get(version or "", self._protocol(port))

    def _name(self, port: Mapping[str, Any]) -> str:
        plain, protocol = port["protocol"].lower(), self._pool_protocol(port).lower()
        words = [plain, str(port["port"]), *([protocol] if protocol != plain else [])]
        if subnet := self._member_subnet:
            words.append(subnet[:8])
        return "-".join([*words, *([self.owner.uid] if self.reused else [])])

    def _health_check(self, port: Mapping[str, Any]) -> HealthCheck:
        options, settings = self.builder.options, self.settings
        if settings.given.get("enable_health_monitor", options.create_monitor) is not True:
            return HealthCheck("NONE")
        proxy = self.spec.get("healthCheckNodePort") if is_local(self.spec) else None
        delay, timeout, up, down = (
            settings.number(f"health_monitor_{name}") or getattr(options, f"monitor_{name}")
            for name in ("delay", "timeout", "max_retries", "max_retries_down")
        )
        if timeout > delay:
            field = f"annotation {CATALOGUE.by_argument['health_monitor_timeout'].name}"
            raise InvalidConfiguration(field, f"{timeout} s is longer than the delay ({delay} s)", f"1 to {delay}")
        return HealthCheck(
            protocol="HTTP" if proxy else _CHECKS[port["protocol"]],
            port=proxy,
            path="/healthz" if proxy else None,
            interval_seconds=delay,
            timeout_seconds=timeout,
            healthy_threshold=up,
            unhealthy_threshold=down,
        )


def _floating(levels: list[tuple[str, Networks]], facts: Fact[Topology]) -> dict[str, str]:
    """Where the floating IP comes from. A subnet says nothing about a network that something more specific names."""
    topology = facts.value
    level = next((index for index, (_, each) in enumerate(levels) if each.floating_network_id), None)
    network = topology.only_external(levels[-1][0]) if level is None else levels[level][1].floating_network_id
    for field, each in levels if level is None else levels[: level + 1]:
        if wanted := choice_of(each):
            topology.candidates(network, wanted, field)
            return {"floating_network": network, "floating_subnet": wanted}
    return {"floating_network": network, "floating_subnet": ""}


def _selected(node: NodeBackend, labels: Sequence[tuple[str, str, str]]) -> bool:
    return all(key in node.labels and (not equals or node.labels[key] == value) for key, equals, value in labels)


def _ignored(service: Object, settings: Settings, options: LoadBalancerOptions) -> Iterator[Ignored]:
    spec, annotations = service["spec"], service["metadata"].get("annotations") or {}
    if options.internal and settings.given.get("internal") is False:
        entry = CATALOGUE.by_argument["internal"]
        why = "the cloud config says internal-lb, so every load balancer is internal"
        yield Ignored(f"annotation {entry.name}", annotations[entry.name], why)
    for entry in settings.ignored:
        yield Ignored(f"annotation {entry.name}", annotations[entry.name], entry.ignored or "")
    yield from ignored_affinity_timeout(spec, "Octavia has no timeout for the affinity of TCP clients")
    if "IPv6" in (spec.get("ipFamilies") or []):
        why = "load balancers on OpenStack have only IPv4 addresses"
        yield Ignored("spec.ipFamilies", tuple(spec["ipFamilies"]), why)

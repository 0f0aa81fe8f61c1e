"""Admits clients to the nodes behind a network load balancer without security groups.

Upstream creates such load balancers, and AWS does not allow groups to be added later. Rules of the nodes' groups, in
upstream's form, admit their clients; a rule's description names its load balancer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from ipaddress import ip_network

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.attributes import texts
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.facts import SecurityGroup
from cloud_controller.clouds.aws.security_group_calls import SecurityGroupCalls
from cloud_controller.clouds.aws.security_rules import TOO_BIG, client_rules
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import LoadBalancerModel, Pool

_RULE = "kubernetes.io/rule/nlb/"
_MTU = f"{_RULE}mtu"
_EVERYBODY = "0.0.0.0/0"
_PREFIX_LIST = "pl-"

Rules = dict[str, str]
"""Texts of rules, each with its description."""


class NodeRules:
    """The rules in the nodes' groups for one cluster's load balancers. Safe to share between threads."""

    def __init__(self, api: Api, config: Config, vpc_state: VpcState) -> None:
        self._disabled = config.disable_security_group_ingress
        self._vpc_state = vpc_state
        self._calls = SecurityGroupCalls(api, vpc_state)
        self._needs: dict[str, frozenset[str]] = {}
        """The needed rules by load balancer. Several may need the same rule (a health check port), which AWS stores
        once, with one description."""

    def attributes(self, load_balancer_id: str, model: LoadBalancerModel) -> dict[str, Value | None]:
        """`ingress_rules` and `security_groups` of a load balancer without security groups.

        `ingress_rules` is () unless the nodes admit exactly the clients of all its listeners.
        """
        facts = self._vpc_state.facts()
        clients = {_EVERYBODY} if self._disabled else _clients(load_balancer_id, facts.node_groups)
        known = self._needs.get(load_balancer_id) or {rule for group in facts.node_groups for rule in group.described}
        too_big = (each.rpartition(" ")[2] for each in known if each.startswith("icmp"))
        path_mtu = self._disabled or not clients or not clients.isdisjoint(too_big)
        rules = _ingress_rules(model, clients or {_EVERYBODY}, path_mtu=path_mtu)
        wanted = self._wanted(load_balancer_id, model, clients, path_mtu=path_mtu)
        self._needs[load_balancer_id] = frozenset(wanted)
        # Without nodes, there is no port to open yet.
        opened = bool(clients) or not any(pool.members for pool in model.pools)
        complete = self._disabled or (
            opened
            and all(
                wanted.keys() <= group.ingress and not self._extra(load_balancer_id, group, wanted, model.pools)
                for group in facts.node_groups
            )
        )
        return {"ingress_rules": rules if complete else (), "security_groups": ()}

    def put(self, load_balancer_id: str, model: LoadBalancerModel) -> None:
        """Admit exactly the clients of the model.

        Raises InvalidConfiguration if the Service needs security groups of the load balancer.
        """
        where = f"load balancer {load_balancer_id}"
        why = "the load balancer was created without security groups, and AWS does not allow them to be added"
        allowed = "a Service without them; or delete and recreate the Service, which changes the address"
        if texts(model.attributes["security_groups"]):
            raise InvalidConfiguration(f"{where}: security groups", why, allowed)
        rules = texts(model.attributes["ingress_rules"])
        clients = {rule.rpartition(" ")[2] for rule in rules}
        if not self._disabled:
            path_mtu = any(rule.startswith("icmp") for rule in rules)
            wanted = self._wanted(load_balancer_id, model, clients, path_mtu=path_mtu)
            with self._vpc_state.changing_nodes:
                for group in self._vpc_state.facts().node_groups:
                    self._change(group, wanted, self._extra(load_balancer_id, group, wanted, model.pools))
                self._needs[load_balancer_id] = frozenset(wanted)
        elif clients != {_EVERYBODY}:
            raise InvalidConfiguration(
                f"{where}: source ranges",
                f"{why}; with DisableSecurityGroupIngress, the controller cannot restrict the nodes' rules either",
                allowed,
            )

    def serves(self, load_balancer_id: str) -> bool:
        """Whether such rules admit clients of this load balancer."""
        return not self._disabled and bool(_clients(load_balancer_id, self._vpc_state.facts().node_groups))

    def open(self, load_balancer_id: str, pool: Pool, subnets: tuple[str, ...]) -> None:
        """Admit the load balancer's clients to this pool too; the load balancer is in these subnets."""
        model = LoadBalancerModel("", {"subnets": subnets}, pools=(pool,))
        with self._vpc_state.changing_nodes:
            groups = self._vpc_state.facts().node_groups
            wanted = self._wanted(load_balancer_id, model, _clients(load_balancer_id, groups), path_mtu=False)
            for group in groups:
                self._change(group, wanted, set())
            self._needs[load_balancer_id] = self._needs.get(load_balancer_id, frozenset()) | wanted.keys()

    def close(self, load_balancer_id: str) -> None:
        """Remove the rules of a deleted load balancer."""
        if not self._disabled:
            with self._vpc_state.changing_nodes:
                for group in self._vpc_state.facts().node_groups:
                    self._change(group, {}, self._extra(load_balancer_id, group, {}, ()))
                self._needs.pop(load_balancer_id, None)

    def _wanted(
        self, load_balancer_id: str, model: LoadBalancerModel, clients: Collection[str], *, path_mtu: bool
    ) -> Rules:
        subnets = {*texts(model.attributes.get("subnets"))}
        facts = self._vpc_state.facts()
        # Health checks come from the load balancer's own addresses.
        checkers = [each.cidr for each in facts.subnets if each.cidr and each.id in subnets]
        wanted: Rules = {}
        for pool in model.pools:
            ports = {member.port for member in pool.members}
            protocols = str(pool.attributes.get("protocol", "TCP")).lower().replace("tls", "tcp").split("_")
            for source in clients:
                wanted |= {
                    f"{each} {port}-{port} {source}": _of(load_balancer_id) for each in protocols for port in ports
                }
                if path_mtu and not source.startswith(_PREFIX_LIST):
                    wanted[f"{TOO_BIG[ip_network(source).version]} {source}"] = _MTU
            check = pool.health_check
            for port in {check.port} if check.port and ports else ports:
                if f"tcp {port}-{port} {_EVERYBODY}" not in wanted:
                    wanted |= {f"tcp {port}-{port} {cidr}": _of(load_balancer_id, "health") for cidr in checkers}
        return wanted

    def _extra(
        self, load_balancer_id: str, group: SecurityGroup, wanted: Mapping[str, str], pools: Iterable[Pool]
    ) -> set[str]:
        """The rules that only this load balancer needed; none while a pool has no nodes, because its ports are
        unknown."""
        if any(not pool.members for pool in pools):
            return set()
        needs = self._needs.copy()
        mine = needs.pop(load_balancer_id, frozenset())
        others = {rule for rules in needs.values() for rule in rules}
        clients = {
            rule: what.removeprefix(_of("")) for rule, what in group.described.items() if what.startswith(_of(""))
        }
        alive = {*clients.values()} - {load_balancer_id}
        sources = {rule.rpartition(" ")[2] for rule, of in clients.items() if of in alive}

        def goes(rule: str, what: str) -> bool:
            if what == _MTU:
                return rule.rpartition(" ")[2] not in sources
            of = what.rpartition("=")[2]
            return of == load_balancer_id or (rule in mine and of not in alive)

        return {
            rule
            for rule, what in group.described.items()
            if what.startswith(_RULE) and rule not in wanted and rule not in others and goes(rule, what)
        }

    def _change(self, group: SecurityGroup, wanted: Mapping[str, str], extra: Set[str]) -> None:
        added = {rule: what for rule, what in wanted.items() if rule not in group.ingress}
        self._calls.exchange(group, added, extra)


def _of(load_balancer_id: str, what: str = "client") -> str:
    return f"{_RULE}{what}={load_balancer_id}"


def _clients(load_balancer_id: str, groups: Iterable[SecurityGroup]) -> set[str]:
    """The sources currently admitted to the load balancer."""
    of = _of(load_balancer_id)
    return {rule.rpartition(" ")[2] for group in groups for rule, what in group.described.items() if what == of}


def _ingress_rules(model: LoadBalancerModel, clients: Iterable[str], *, path_mtu: bool) -> tuple[str, ...]:
    lists = {each for each in clients if each.startswith(_PREFIX_LIST)}
    ranges = [ip_network(each) for each in sorted({*clients} - lists)]
    return client_rules([listener.key for listener in model.listeners], ranges, lists, path_mtu=path_mtu)

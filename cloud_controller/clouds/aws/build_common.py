"""The parts of a model that network and classic load balancers have in common. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws import attributes as aws
from cloud_controller.clouds.aws.annotations import AWS_LBC_CLASS, CATALOGUE
from cloud_controller.clouds.aws.attributes import contradictions, pairs
from cloud_controller.clouds.aws.facts import Subnet
from cloud_controller.clouds.aws.ip_permissions import MOST_GROUPS, MOST_RULES
from cloud_controller.clouds.aws.names import SERVICE_NAME_TAG
from cloud_controller.clouds.aws.request import Port, Request, as_text, field
from cloud_controller.clouds.aws.security_rules import client_rules
from cloud_controller.clouds.aws.subnets import chosen
from cloud_controller.clouds.common.source_ranges import EVERYBODY, field_and_texts, source_ranges
from cloud_controller.load_balancers.backends import Backends, Member
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Ignored, LoadBalancerModel, Object

_FREE_ADDRESSES = 8
"""The free IP addresses that AWS requires in a classic load balancer's subnet, and the AWS Load Balancer Controller
for both kinds."""


# ----------------------------------------------------------------------------------------------- the load balancer


def scheme(asked: Request) -> str:
    """`internal` or `internet-facing`.

    Services of the AWS Load Balancer Controller's class keep its default: what was internal there must not become
    public.
    """
    given = asked.settings.given
    of_the_other = asked.spec.get("loadBalancerClass") == AWS_LBC_CLASS
    return str(given.get("scheme", "internal" if given.get("internal", of_the_other) else "internet-facing"))


def subnets(asked: Request, of_scheme: str) -> tuple[Subnet, ...]:
    """The subnets, in the order of the annotation, otherwise of their Availability Zones."""
    named = asked.words("subnets") if "subnets" in asked.settings.given else None
    return chosen(asked.facts, asked.config, of_scheme, named)


def tags(asked: Request, marks: Mapping[str, str]) -> dict[str, str]:
    """The tags of all resources of the Service, including `marks`."""
    owner = asked.owner
    own = {
        **owner.tags,
        asked.config.cluster_tag: "owned",
        SERVICE_NAME_TAG: f"{owner.namespace}/{owner.name}",
        **marks,
    }
    return {**asked.pairs("additional_resource_tags"), **own}


def front(asked: Request, listeners: Iterable[tuple[str, int]], *, dualstack: bool) -> dict[str, Value | None]:
    """Which clients may connect: `security_groups` that users name, and `ingress_rules` of the Service's own groups."""
    arguments = ("security_groups", "extra_security_groups")
    named = [word for each in arguments for word in asked.words(each)]
    own = not asked.words("security_groups") and not asked.config.elb_security_group
    if not asked.words("security_groups") and asked.config.elb_security_group:
        named.append(asked.config.elb_security_group)
    places = MOST_GROUPS - len(set(named)) - (0 if asked.config.disable_security_group_ingress else 1)
    if not own:
        return {"security_groups": tuple(sorted(set(named))), "ingress_rules": None}
    lists = asked.words("security_group_prefix_lists")
    versions = (4, 6) if dualstack else (4,)
    clients = source_ranges(asked.spec, asked.settings, versions)
    if not clients and not lists:
        clients = tuple(EVERYBODY[version] for version in versions)
    path_mtu = asked.settings.text("enable_icmp_for_path_mtu_discovery") == "on"
    rules = client_rules(listeners, clients, lists, path_mtu=path_mtu)
    if len(rules) > places * MOST_RULES:
        where, texts = field_and_texts(asked.spec, asked.settings)
        why = f"the ports and sources need {len(rules)} security group rules"
        where = where if texts else field("security_group_prefix_lists")
        raise InvalidConfiguration(where, why, f"at most {places * MOST_RULES} rules, in {places} security groups")
    return {"security_groups": tuple(sorted(set(named))), "ingress_rules": rules}


def logs(asked: Request, named: Mapping[str, str]) -> dict[str, str]:
    """The attributes of both kinds: access logs and cross-zone load balancing.

    `named` are those that the Service sets by their AWS names.
    """
    settings = asked.settings
    found: dict[str, str] = {}
    for argument, key in aws.OF_ANNOTATIONS.items():
        given = settings.given.get(argument)
        text = None if given is None else as_text(given) if isinstance(given, bool) else str(given)
        found[key] = named.get(key, text or aws.LOAD_BALANCER[key].default)
    if found[aws.ENABLED] != "true":
        del found[aws.BUCKET], found[aws.PREFIX]
    return found


# ---------------------------------------------------------------------------------------------------- TLS and nodes


def speaks_tls(asked: Request, port: Port) -> bool:
    """Whether the listener of this port terminates TLS: it has a certificate, and `ssl-ports` includes the port."""
    return port["protocol"] == "TCP" and bool(asked.words("ssl_cert")) and _listed(asked, port)


def _listed(asked: Request, port: Port) -> bool:
    listed = asked.words("ssl_ports")
    return not listed or "*" in listed or str(port["port"]) in listed or (port.get("name") or "*") in listed


def node_members(service: Object, port: Port, backends: Backends, *, number: int | None = None) -> tuple[Member, ...]:
    """The nodes behind a port, at its node port or at `number`, filtered by the Service's node labels.

    Traffic policy Local does not filter them: the health check finds the nodes with pods.
    """
    words = CATALOGUE.value(service["metadata"].get("annotations"), "target_node_labels")
    wanted = pairs(field("target_node_labels"), words) if isinstance(words, tuple) else {}
    # Fargate pods have no instance whose ports could be targets.
    nodes = tuple([node for node in backends.nodes if node.instance_id.startswith("i-")])
    if wanted:
        nodes = tuple(node for node in nodes if _has(node.labels, wanted))
    return Backends(nodes).by_node_port(port["nodePort"] if number is None else number)


def _has(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(key in labels and value in ("", labels[key]) for key, value in wanted.items())


# --------------------------------------------------------------------------------------------- ignored and warnings


def warnings(asked: Request, model: LoadBalancerModel, *arguments: str) -> tuple[tuple[str, str], ...]:
    """Warnings about subnets with few free addresses, and about repeated keys in `key=value` annotations."""
    given = (*arguments, "additional_resource_tags", "target_node_labels")
    members = [f"{argument}.{suffix}" for argument in arguments for suffix in asked.settings.members(argument)]
    repeated = (
        (argument, key, value)
        for argument in (*given, *members)
        for key, value in contradictions(asked.words(argument)).items()
    )
    return (
        *_full_subnets(asked, model),
        *(
            ("RepeatedKey", f"{field(argument)}: {key!r} appears several times; the last value, {value!r}, is used")
            for argument, key, value in repeated
        ),
    )


def _full_subnets(asked: Request, model: LoadBalancerModel) -> Iterator[tuple[str, str]]:
    chosen = aws.texts(model.attributes["subnets"])
    for subnet in asked.facts.subnets:
        free = subnet.free_addresses
        if subnet.id in chosen and free is not None and free < _FREE_ADDRESSES:
            # The text omits the number of free addresses, which changes: equal events only raise a count.
            why = f"has fewer than {_FREE_ADDRESSES} free IP addresses, which a load balancer needs"
            yield "SubnetAlmostFull", f"{subnet.id} ({subnet.cidr}) {why}"


def ignored(asked: Request, model: LoadBalancerModel) -> Iterator[Ignored]:
    """The settings that have no effect on this model, for either kind of load balancer."""
    annotations = asked.service["metadata"].get("annotations") or {}
    for entry in asked.settings.ignored:
        yield Ignored(f"annotation {entry.name}", annotations[entry.name], entry.ignored or "")
    if not asked.words("ssl_cert"):
        for argument in ("ssl_ports", "ssl_negotiation_policy"):
            yield from asked.ignored(argument, f"{field('ssl_cert')} is not set")
    else:
        names = {"*", *(str(port["port"]) for port in asked.ports), *(port.get("name") or "" for port in asked.ports)}
        strange = tuple(word for word in asked.words("ssl_ports") if word not in names)
        if strange:
            yield Ignored(field("ssl_ports"), strange, "the Service has no port with this number or name")
    if all(pool.health_check.path is None for pool in model.pools):
        for argument in ("healthcheck_path", "healthcheck_success_codes"):
            yield from asked.ignored(argument, f"{field('healthcheck_protocol')} is not HTTP")
    if model.attributes[aws.ENABLED] != "true":
        for argument in ("access_log_s3_bucket_name", "access_log_s3_bucket_prefix"):
            yield from asked.ignored(argument, f"{field('access_log_enabled')} is not true")

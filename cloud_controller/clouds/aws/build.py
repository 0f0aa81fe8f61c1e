"""The pure half of AWS's load balancers: what Services and nodes become, as network or classic load balancers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from cloud_controller.cloud import InstanceRef, InvalidConfiguration
from cloud_controller.clouds.aws import build_classic, build_network, upstream
from cloud_controller.clouds.aws.annotations import (
    AWS_LBC_CLASS,
    AWS_LBC_FINALIZER,
    AWS_LBC_TYPES,
    CATALOGUE,
    CLASSES,
)
from cloud_controller.clouds.aws.attributes import DEREGISTRATION_DELAY, pairs
from cloud_controller.clouds.aws.build_network_targets import OF_ALL_PORTS, OF_PORT
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.facts import BuildFacts, Facts
from cloud_controller.clouds.aws.named import named
from cloud_controller.clouds.aws.provider_ids import identity
from cloud_controller.clouds.aws.request import kind_of, request
from cloud_controller.listed import listed
from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend
from cloud_controller.load_balancers.catalogue import Annotation, Catalogue
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import Built, Object, Owner


@dataclass(frozen=True, slots=True)
class AwsBuilder:
    """See `LoadBalancerBuilder`."""

    config: Config

    @property
    def catalogue(self) -> Catalogue:
        """AWS's annotations."""
        return CATALOGUE

    def claims(self, service: Object) -> bool:
        """False if an annotation leaves the Service to the AWS Load Balancer Controller.

        One of this controller's classes takes precedence over the annotation. Services of that controller's class are
        served (if the cloud config says so) unless they have its finalizer: two controllers must never serve one
        Service.
        """
        metadata = service["metadata"]
        if service["spec"].get("loadBalancerClass") == AWS_LBC_CLASS:
            return AWS_LBC_FINALIZER not in (metadata.get("finalizers") or ())
        annotations = CATALOGUE.meant(metadata.get("annotations"))
        by_type = (annotations.get(CATALOGUE.by_argument["type"].name) or "").strip()
        return service["spec"].get("loadBalancerClass") in CLASSES or by_type not in AWS_LBC_TYPES

    def follows_endpoints(self, service: Object) -> bool:
        """Whether the targets are pods. With node ports all nodes are targets, and health checks find those with
        pods."""
        return build_network.follows_endpoints(service)

    def drains(self, service: Object) -> bool:
        """Whether connections drain: on network load balancers unless a port's deregistration delay is 0; on classic
        ones if the Service enables it."""
        annotations = CATALOGUE.meant(service["metadata"].get("annotations"))
        try:
            if kind_of(service) == "classic":
                return CATALOGUE.value(annotations, "connection_draining_enabled") is True
            given = {entry.argument: pairs(entry.name, words) for entry, words in _target_group_attributes(annotations)}
        except InvalidConfiguration:
            return False
        delays = {argument: attributes.get(DEREGISTRATION_DELAY) for argument, attributes in given.items()}
        numbers = {port["port"] for port in service["spec"].get("ports") or ()}
        return all((delays.get(f"{OF_PORT}.{each}") or delays.get(OF_ALL_PORTS)) != "0" for each in numbers)

    def pod_ranges(self, service: Object, facts: Fact[BuildFacts]) -> tuple[str, ...] | None:
        """The ranges of the VPC's subnets: the VPC CNI assigns pods addresses there."""
        return facts.value.vpc.ranges if build_network.by_pod(service) else None

    def backend(self, node: Object) -> NodeBackend | None:
        """The node as a backend of load balancers; None if it has no machine on AWS."""
        provider_id, metadata = node["spec"].get("providerID"), node["metadata"]
        try:
            found = identity(InstanceRef(metadata["name"], provider_id)) if provider_id else None
        except InvalidConfiguration:
            return None
        machine = (found.instance_id or found.fargate) if found else None
        if not found or not machine:
            return None
        labels = metadata.get("labels") or {}
        return NodeBackend(metadata["name"], machine, machine, labels=labels, is_pod=found.fargate is not None)

    def foreign_name(self, owner: Owner) -> str:
        """The name that upstream gives to this Service's load balancer."""
        return upstream.name_for(owner.uid)

    def build(self, service: Object, backends: Backends, facts: Fact[BuildFacts]) -> Built:
        """The model of a Service with these backends. Raises InvalidConfiguration that names the field or
        annotation."""
        known = facts.value
        asked = request(service, self.config, known.vpc)
        build_one = build_network.build if asked.kind == "network" else build_classic.build
        built = build_one(asked, backends)
        warnings = built.warnings
        if known.pod_groups:
            targets = {member.address for pool in built.model.pools for member in pool.members}
            groups = {address: found for address, found in known.pod_groups.items() if address in targets}
            warnings = (*warnings, *_closed(known.vpc, groups, self.config.cluster_tag))
        return replace(built, named=tuple(named(asked, known)), warnings=warnings)

    def members(self, service: Object, backends: Backends) -> dict[tuple[str, int], tuple[Member, ...]]:
        """The members behind each listener, even if other settings of the Service are invalid."""
        if kind_of(service) == "network":
            return build_network.members(service, backends)
        nodes = build_classic.members(service, backends)
        ports = service["spec"].get("ports") or ()
        return {("TCP", port["port"]): nodes for port in ports if port["protocol"] == "TCP"}


def _target_group_attributes(annotations: Mapping[str, str]) -> Iterator[tuple[Annotation, tuple[str, ...]]]:
    """The attributes of all target groups, and of single ones."""
    for name, text in annotations.items():
        entry = CATALOGUE.entry(name)
        if entry is not None and entry.sets == "pool.attributes" and isinstance(words := entry.parse(text), tuple):
            yield entry, words


def _closed(vpc: Facts, groups_of_pods: Mapping[str, tuple[str, ...]], cluster_tag: str) -> Iterator[tuple[str, str]]:
    """A warning about pods whose groups are all closed to load balancers."""
    opened = {group.id for group in vpc.node_groups}
    pods = {address: groups for address, groups in groups_of_pods.items() if opened.isdisjoint(groups)}
    if pods:
        shown = [f"{address} ({', '.join(groups)})" for address, groups in sorted(pods.items())]
        why = (
            f"none of these pods' security groups has the tag {cluster_tag}, so the controller does not open"
            " them to load balancers"
        )
        yield "PodSecurityGroups", f"{listed(shown)}: {why}"

"""The pure half of Alibaba Cloud's load balancers: what Services and nodes become, as CLB or NLB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from cloud_controller.cloud import InstanceRef, InvalidConfiguration
from cloud_controller.clouds.alicloud.annotations import CATALOGUE
from cloud_controller.clouds.alicloud.backends import UNSCHEDULABLE
from cloud_controller.clouds.alicloud.clb import build as clb
from cloud_controller.clouds.alicloud.clb.annotations import CLB
from cloud_controller.clouds.alicloud.clb.request import Request as ClbRequest
from cloud_controller.clouds.alicloud.config import Config
from cloud_controller.clouds.alicloud.names import ACK_TAG
from cloud_controller.clouds.alicloud.nlb import build as nlb
from cloud_controller.clouds.alicloud.nlb.annotations import NLB
from cloud_controller.clouds.alicloud.nlb.request import Request as NlbRequest
from cloud_controller.clouds.alicloud.provider_ids import is_left_alone, machine_id
from cloud_controller.clouds.common.service_spec import is_local
from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import CLUSTER_TAG, Built, Object, Owner
from cloud_controller.load_balancers.nameable import Named

KIND = "type"
"""The model's attribute that holds the kind, `clb` or `nlb`."""


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """The cluster's VPC, its CIDRs if pods are backends, and the tags of the elastic IPs that Services name."""

    vpc_id: str
    ranges: tuple[str, ...] = ()
    address_tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AliCloudBuilder:
    """See `LoadBalancerBuilder`."""

    config: Config

    @property
    def catalogue(self) -> Catalogue:
        """The annotations of both kinds."""
        return CATALOGUE

    def claims(self, _: Object) -> bool:
        """Always: the class alone says which controller serves a Service."""
        return True

    def follows_endpoints(self, service: Object) -> bool:
        """Whether the Service's members depend on where its pods are."""
        if is_nlb(service):
            return nlb.follows_endpoints(service)
        return is_local(service["spec"]) or by_pod(service)

    def drains(self, service: Object) -> bool:
        """Whether removed members keep their connections: `connection-drain` says so."""
        if is_nlb(service):
            return nlb.drains(service)
        try:
            return CLB.value(service["metadata"].get("annotations"), "connection_drain") == "on"
        except InvalidConfiguration:
            return False

    def pod_ranges(self, service: Object, facts: Fact[BuildFacts]) -> tuple[str, ...] | None:
        """The VPC's CIDRs if the members are pods: the network plugin gives them addresses there."""
        return facts.value.ranges if by_pod(service) else None

    def backend(self, node: Object) -> NodeBackend | None:
        """The node as a backend; None if it is no instance of this region, or is left alone."""
        metadata, spec = node["metadata"], node["spec"]
        try:
            ref = InstanceRef(metadata["name"], spec.get("providerID"))
            machine = None if is_left_alone(node) else machine_id(ref, self.config.region)
        except InvalidConfiguration:
            return None
        if machine is None:
            return None
        labels = {**(metadata.get("labels") or {}), **({UNSCHEDULABLE: "true"} if spec.get("unschedulable") else {})}
        return NodeBackend(metadata["name"], machine, machine, labels=labels)

    def foreign_name(self, _: Owner) -> None:
        """None: load balancers of Alibaba Cloud's own controller are not adopted."""

    def build(self, service: Object, backends: Backends, facts: Fact[BuildFacts]) -> Built:
        """The model of a Service with these backends. Raises InvalidConfiguration that names the field or
        annotation."""
        kind = "nlb" if is_nlb(service) else "clb"
        # With the annotations of the other kind, which are reported as having no effect.
        catalogue = CATALOGUE.of_class(NLB.classes[0] if kind == "nlb" else None)
        settings = catalogue.parse(service["metadata"].get("annotations"))
        if kind == "nlb":
            built = nlb.build(NlbRequest(service, settings, self.config), backends, facts.value)
            built = replace(built, named=tuple(self._with_owner(each, facts.value) for each in built.named))
        else:
            built = clb.build(ClbRequest(service, settings, self.config), backends)
        if built.reuse is not None:
            return built
        return replace(built, model=replace(built.model, attributes={**built.model.attributes, KIND: kind}))

    def _with_owner(self, named: Named, facts: BuildFacts) -> Named:
        """The same, with the other cluster whose tag an elastic IP has."""
        tags = facts.address_tags.get(named.names[0], {}) if named.kind == "elastic-ip" else {}
        clusters = {tags[key] for key in (CLUSTER_TAG, ACK_TAG) if key in tags}
        if not clusters or self.config.cluster_id in clusters:
            return named
        return replace(named, whose=f"has the tag of cluster {', '.join(sorted(clusters))}")

    def members(self, service: Object, backends: Backends) -> Mapping[tuple[str, int], tuple[Member, ...]]:
        """The members behind each listener, even if other settings of the Service are invalid."""
        if is_nlb(service):
            return nlb.members(service, backends)
        annotations = service["metadata"].get("annotations")
        of_members = [entry.argument for entry in CLB if entry.sets == "pool.members" and not entry.ignored]
        values = {argument: CLB.value(annotations, argument) for argument in (*of_members, "ip_version")}
        given = {argument: value for argument, value in values.items() if value is not None}
        return clb.members(ClbRequest(service, CLB.settings(given), self.config), backends)


def is_nlb(service: Object) -> bool:
    """Whether the Service's class selects an NLB."""
    return service["spec"].get("loadBalancerClass") in NLB.classes


def elastic_ips(service: Object) -> Iterator[str]:
    """The elastic IPs that the Service of an NLB names, if the annotation is valid."""
    with suppress(InvalidConfiguration):
        zones = NLB.value(service["metadata"].get("annotations"), "zone_maps") if is_nlb(service) else None
        words = (each.split(":") for each in (zones if isinstance(zones, tuple) else ()))
        yield from (each[3].strip() for each in words if len(each) > 3 and each[3].strip())


def by_pod(service: Object) -> bool:
    """Whether the Service's members are pods; False if its annotation is invalid."""
    try:
        return CATALOGUE.value(service["metadata"].get("annotations"), "backend_type") == "eni"
    except InvalidConfiguration:
        return False

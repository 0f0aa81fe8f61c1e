"""Makes moto behave as AWS where this site depends on the difference.

Clusters of EKS take time and have a control plane behind them; an instance's network interfaces end with it; rules of
security groups have descriptions; a dry run changes no routes. Load balancers are in `balancing`, updates of clusters
in `clusters`, scaling groups in `scaling`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from moto.ec2.models.instances import Instance
from moto.ec2.models.security_groups import SecurityGroupRule
from moto.ec2.responses.route_tables import RouteTables
from moto.eks import models as eks

from local.aws import balancing, clusters, scaling

POD_RANGE_TAG = "cloud-controller/pod-cidr"
"""EKS has no such setting: its pods have addresses of the VPC, or of an overlay in the cluster."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a started control plane reports."""

    version: str
    endpoint: str
    certificate_authority: str


class SiteCluster(eks.Cluster):
    """A cluster of EKS with a real control plane: its status is CREATING until that can be used."""

    uid: str
    """Unlike its name, never reused."""

    index: int
    """The site's network that its addresses are from; -1 if none was free."""

    creator: str
    """The caller of CreateCluster, who gets access."""

    service_range_asked: bool
    """Whether the caller chose the range of cluster IPs."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.service_range_asked = "serviceIpv4Cidr" in (settings.get("kubernetes_network_config") or {})
        self.uid = uuid4().hex[:12]
        self.index = -1
        self.creator = ""
        self.status = "CREATING"
        self.endpoint = ""
        self.certificate_authority = {}
        self.health: dict[str, list[dict[str, str]]] = {"issues": []}

    @property
    def pod_range(self) -> str | None:
        """The requested range of pod addresses, where they are not from the VPC."""
        return self.tags.get(POD_RANGE_TAG) if self.tags else None

    def become_active(self, facts: ClusterFacts) -> None:
        """Its control plane can be used."""
        self.version = facts.version
        self.endpoint = facts.endpoint
        self.certificate_authority = {"data": base64.b64encode(facts.certificate_authority.encode()).decode()}
        self.status = eks.ACTIVE_STATUS

    def fail(self, why: str) -> None:
        """It gets no control plane; DescribeCluster returns the reason."""
        self.status = "FAILED"
        self.health = {"issues": [{"code": "InternalFailure", "message": why}]}


def differ_from_moto() -> None:
    """Patch moto in this process."""
    eks.Cluster = SiteCluster  # type: ignore[misc]
    Instance.prep_nics = _with_ending_interfaces  # type: ignore[assignment]
    SecurityGroupRule.description = property(_described)  # type: ignore[assignment]
    for (owner, method), instead in {**DRY_RUNS, **balancing.AS_AWS, **clusters.AS_AWS, **scaling.AS_AWS}.items():
        setattr(owner, method, instead)


def _but_for_dry_runs(change: Callable[[RouteTables], Any]) -> Callable[[RouteTables], Any]:
    def answer(responses: RouteTables) -> Any:
        responses.error_on_dryrun()
        return change(responses)

    return answer


DRY_RUNS: Mapping[tuple[type, str], Any] = {
    (RouteTables, "create_route"): _but_for_dry_runs(RouteTables.create_route),
    (RouteTables, "delete_route"): _but_for_dry_runs(RouteTables.delete_route),
}
"""The replacement of each method that ignores the parameter DryRun."""


def _described(rule: SecurityGroupRule) -> str | None:
    """moto stores the rules' descriptions for groups, and returns them only for address ranges."""
    return rule.ip_range.get("Description") or rule.source_group.get("Description")


_make_interfaces = Instance.prep_nics


def _with_ending_interfaces(
    instance: Instance, nic_spec: list[dict[str, Any]], *arguments: Any, **settings: Any
) -> None:
    """moto keeps the network interfaces of terminated instances; AWS deletes those that it made with the instance."""
    _make_interfaces(instance, nic_spec, *arguments, **settings)
    given = {int(nic["DeviceIndex"]) for nic in nic_spec if {"NetworkInterfaceId", "DeleteOnTermination"} & nic.keys()}
    for index, interface in instance.nics.items():
        if index not in given:
            interface.delete_on_termination = True

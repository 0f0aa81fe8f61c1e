"""Replaces parts of moto's EKS clusters that differ from AWS's documentation.

- New subnets must be in the VPC and in exactly the zones of the first ones (moto: any).
- Parts of the network that an update omits stay as they were (moto: are dropped).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moto.ec2.models import ec2_backends
from moto.eks.exceptions import InvalidParameterException
from moto.eks.models import EKSBackend

_update = EKSBackend.update_cluster_config


def _update_cluster_config(
    backend: EKSBackend, name: str, resources_vpc_config: dict[str, Any] | None, *rest: Any, **more: Any
) -> Any:
    cluster = backend.clusters.get(name)
    if cluster is not None and resources_vpc_config:
        before = cluster.resources_vpc_config
        _require_same_places(backend, before.get("subnetIds") or (), resources_vpc_config.get("subnetIds") or ())
        resources_vpc_config = {**before, **resources_vpc_config}
    return _update(backend, name, resources_vpc_config or {}, *rest, **more)


def _require_same_places(backend: EKSBackend, before: Iterable[str], after: Iterable[str]) -> None:
    first, new = (_places(backend, subnets) for subnets in (before, after))
    if new and new != first:
        zones, allowed = (", ".join(sorted(zone for _, zone in places)) for places in (new, first))
        raise InvalidParameterException(
            message=f"Provided subnets belong to the AZs '{zones}'. But they should belong to the exact set of AZs "
            f"'{allowed}' in which subnets were provided during cluster creation, and to its VPC."
        )


def _places(backend: EKSBackend, subnet_ids: Iterable[str]) -> set[tuple[str, str]]:
    """VPC and zone of each subnet."""
    ec2 = ec2_backends[backend.account_id][backend.region_name]
    found = (ec2.get_subnet(subnet_id) for subnet_id in subnet_ids)
    return {(str(subnet.vpc_id), str(subnet.availability_zone)) for subnet in found}


AS_AWS: Mapping[tuple[type, str], Any] = {(EKSBackend, "update_cluster_config"): _update_cluster_config}
"""The replacement of each method."""

"""Chooses the subnets of a load balancer: those that its Service names, or one for each Availability Zone. Pure.

The choice is upstream's: subnets with this cluster's tag or no cluster's tag; public ones for internet-facing load
balancers. In each zone, a subnet with the role's tag comes first, then one with the cluster's tag, then the lowest
ID. Local and Wavelength Zones support neither kind of load balancer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.config import CLUSTER_PREFIX, Config
from cloud_controller.clouds.aws.facts import Facts, Subnet

FIELD = f"annotation {CATALOGUE.by_argument['subnets'].name}"

_ROLE = {"internet-facing": "kubernetes.io/role/elb", "internal": "kubernetes.io/role/internal-elb"}
_OLD_CLUSTER_TAG = "KubernetesCluster"


def chosen(facts: Facts, config: Config, scheme: str, named: Sequence[str] | None) -> tuple[Subnet, ...]:
    """The subnets, in the order of `named` (IDs or Name tags), otherwise of their zones.

    Raises InvalidConfiguration if a named subnet does not exist, or no subnet is suitable.
    """
    found = [by_word(facts.subnets, word) for word in named] if named is not None else _found(facts, config, scheme)
    if not found:
        kind = "public subnet (with a route to an internet gateway)" if scheme == "internet-facing" else "subnet"
        why = f"not set, and {facts.vpc_id} has no {kind} that has the tag {config.cluster_tag} or no cluster's tag"
        raise InvalidConfiguration(FIELD, why, "the IDs or Name tags of subnets, one for each Availability Zone")
    zones: dict[str, Subnet] = {}
    for subnet in found:
        other = zones.setdefault(subnet.zone, subnet)
        if other is not subnet:
            why = f"{other.id} and {subnet.id} are both in {subnet.zone}"
            raise InvalidConfiguration(FIELD, why, "one subnet for each zone")
    return tuple(found)


def by_word(subnets: Iterable[Subnet], word: str) -> Subnet:
    """The subnet with this ID or Name tag. Raises InvalidConfiguration unless there is exactly one."""
    by_id = word.startswith("subnet-")
    found = [each for each in subnets if (each.id == word if by_id else each.tags.get("Name") == word)]
    if len(found) != 1:
        why = f"{len(found) or 'no'} subnets in the VPC have {'the ID' if by_id else 'the Name tag'} {word!r}"
        raise InvalidConfiguration(FIELD, why, "exactly one subnet in the cluster's network")
    return found[0]


def _found(facts: Facts, config: Config, scheme: str) -> list[Subnet]:
    ours = [subnet for subnet in facts.subnets if _may_be_ours(subnet, config)]
    if not ours and config.subnet_id:
        ours = [subnet for subnet in facts.subnets if subnet.id == config.subnet_id]
    fit = (each for each in ours if each.in_regional_zone and (each.public or scheme == "internal"))
    best: dict[str, Subnet] = {}
    for subnet in sorted(fit, key=lambda each: (_ROLE[scheme] not in each.tags, not _tagged(each, config), each.id)):
        best.setdefault(subnet.zone, subnet)
    return [best[zone] for zone in sorted(best)]


def _tagged(subnet: Subnet, config: Config) -> bool:
    return config.cluster_tag in subnet.tags or subnet.tags.get(_OLD_CLUSTER_TAG) == config.cluster_id


def _may_be_ours(subnet: Subnet, config: Config) -> bool:
    return _tagged(subnet, config) or not any(key.startswith(CLUSTER_PREFIX) for key in subnet.tags)

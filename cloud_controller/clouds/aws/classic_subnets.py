"""Moves a classic load balancer to other subnets: at most one in each zone, and always at least one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.leaving_zones import until_free
from cloud_controller.clouds.aws.subnets import FIELD

_ATTACH, _DETACH = "AttachLoadBalancerToSubnets", "DetachLoadBalancerFromSubnets"


def move(api: Api, name: str, *, actual: Collection[str], wanted: Collection[str], zones: Mapping[str, str]) -> None:
    """Make the calls of `steps`. Raises Postponed if a zone is not free yet; the next plan continues."""
    for operation, subnets in steps(actual, wanted, zones):
        with until_free():
            api.call("elb", operation, LoadBalancerName=name, Subnets=[*subnets])


def steps(
    actual: Collection[str], wanted: Collection[str], zones: Mapping[str, str]
) -> list[tuple[str, Sequence[str]]]:
    """The calls and their subnets: new zones first, then replacements zone by zone.

    `zones` are the subnets' zones. Raises InvalidConfiguration if the only subnet would have to be removed first.
    """
    before = {zones.get(subnet): subnet for subnet in actual}
    added = [subnet for subnet in wanted if subnet not in actual]
    successors = {before[zones.get(subnet)]: subnet for subnet in added if zones.get(subnet) in before}
    further = [subnet for subnet in added if subnet not in successors.values()]
    if successors and len(actual) == 1 and not further:
        old, new = next(iter(successors.items()))
        why = (
            f"{new} cannot replace {old}: both are in the same Availability Zone, and a load balancer needs at"
            " least one subnet"
        )
        raise InvalidConfiguration(
            FIELD, why, "an additional subnet in another Availability Zone until the change is complete"
        )
    gone = [subnet for subnet in actual if subnet not in wanted and subnet not in successors]
    swaps = [step for old, new in successors.items() for step in ((_DETACH, [old]), (_ATTACH, [new]))]
    return [(operation, subnets) for operation, subnets in ((_ATTACH, further), *swaps, (_DETACH, gone)) if subnets]

"""What a Service's settings come to on AWS."""

from __future__ import annotations

from typing import Final

from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.attributes import CROSS_ZONE
from cloud_controller.clouds.aws.port_terms import TLS
from cloud_controller.clouds.aws.refusals import LOGGED, NETWORK, attribute
from cloud_controller.load_balancers.terms import PORTS, Asked, Term, flag
from policy.clouds.interface import Balancers, Zones

_PROTECTED, _CROSSES = attribute("deletion_protection.enabled"), attribute(CROSS_ZONE)
_ANY_TLS = PORTS.where(TLS).any


def _name(argument: str) -> str:
    return f"annotation {CATALOGUE.by_argument[argument].name}"


def _is(term: Term, asked: Asked) -> bool:
    return bool(term.of(asked))


def _kind(asked: Asked) -> str:
    return "network" if _is(NETWORK, asked) else "classic"


def _unprotected(asked: Asked) -> str | None:
    """Only network load balancers have the attribute."""
    if _kind(asked) == "classic" or _PROTECTED.of(asked) == "true":
        return None
    return f"{_name('attributes')}: deletion_protection.enabled=true"


def _unlogged(asked: Asked) -> str | None:
    """A network load balancer logs TLS alone."""
    if (_kind(asked) == "network" and not _is(_ANY_TLS, asked)) or _is(LOGGED, asked):
        return None
    return f'{_name("access_log_enabled")}: "true"'


def _crosses(asked: Asked) -> bool:
    return _is(flag("cross_zone_load_balancing_enabled"), asked) or _CROSSES.of(asked) == "true"


BALANCERS: Final = Balancers(
    ends_tls=lambda asked: _is(TLS, asked),
    unprotected=_unprotected,
    protected_by_ours=True,
    unlogged=_unlogged,
    kind=_kind,
    # AWS's documentation, quotas of Elastic Load Balancing and of Amazon VPC, November 2026.
    quotas={
        "network": 50,
        "classic": 20,
        "listeners of network": 50,
        "listeners of classic": 100,
        "addresses": 5,
    },
)

ZONES: Final = Zones(
    annotation="subnets",
    subnets={"aws:ec2/subnet:Subnet": "availabilityZone"},
    pools={
        "aws:autoscaling/group:Group": "vpcZoneIdentifiers",
        "aws:ec2/instance:Instance": "subnetId",
        "aws:eks/nodeGroup:NodeGroup": "subnetIds",
    },
    crosses=_crosses,
)

"""Which machines of a stack on OpenStack have security groups that limit egress.

A port's groups add up: traffic that any of them allows is allowed. A group begins with rules that allow everything out.
"""

from __future__ import annotations

from policy.objects import dig
from policy.rules import Stack
from policy.subjects import Subject, made_of

_MACHINE = "openstack:compute/instance:Instance"
_PORT = "openstack:networking/port:Port"
_GROUP = "openstack:networking/secGroup:SecGroup"
_RULE = "openstack:networking/secGroupRule:SecGroupRule"


def limits_egress(stack: Stack) -> bool:
    """Whether there is a machine all of whose ports' groups let out to less than everything."""
    opened = _open_groups(stack)
    ports = {port.urn: made_of(port, "securityGroupIds", _GROUP) for port in stack.of(_PORT)}
    for machine in stack.of(_MACHINE):
        groups = [ports.get(port, set[str]()) for port in made_of(machine, "networks", _PORT)]
        # A port without any has the project's default group.
        if groups and all(each and not each & opened for each in groups):
            return True
    return False


def _open_groups(stack: Stack) -> set[str]:
    """The URNs of the groups that let out to everything."""
    opened = set[str]()
    for group in stack.of(_GROUP):
        if not dig(group.props, "deleteDefaultRules") and group.urn is not None:
            opened.add(group.urn)
    for rule in stack.of(_RULE):
        if _is_open(rule):
            opened |= made_of(rule, "securityGroupId", _GROUP)
    return opened


def _is_open(rule: Subject) -> bool:
    """Without a range or another group it is for everything."""
    if dig(rule.props, "direction") != "egress" or dig(rule.props, "protocol"):
        return False
    if cidr := dig(rule.props, "remoteIpPrefix"):
        return cidr in ("0.0.0.0/0", "::/0")
    return not (dig(rule.props, "remoteGroupId") or dig(rule.props, "remoteAddressGroupId"))

"""Which machines of a stack on AWS have security groups that limit egress. Without a rule, a group lets nothing out."""

from __future__ import annotations

from collections.abc import Iterable

from policy.objects import dig, items
from policy.rules import Stack
from policy.subjects import made_of

_MACHINES = ("aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/instance:Instance")
_GROUP = "aws:ec2/securityGroup:SecurityGroup"
_RULE = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
_OLD_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
_ANYWHERE = frozenset({"0.0.0.0/0", "::/0"})


def limits_egress(stack: Stack) -> bool:
    """Whether there is a machine, or a launch template, all of whose groups let out to less than everything."""
    opened = _open_groups(stack)
    machines = (made_of(machine, "vpcSecurityGroupIds", _GROUP) for machine in stack.of(*_MACHINES))
    return any(groups and not groups & opened for groups in machines)


def _open_groups(stack: Stack) -> set[str]:
    """The URNs of the groups that let out to everything."""
    opened = set[str]()
    for rule in stack.of(_RULE):
        if dig(rule.props, "ipProtocol") == "-1" and _anywhere(
            (dig(rule.props, "cidrIpv4"), dig(rule.props, "cidrIpv6"))
        ):
            opened |= made_of(rule, "securityGroupId", _GROUP)
    for rule in stack.of(_OLD_RULE):
        if dig(rule.props, "type") == "egress" and _is_open(rule.props):
            opened |= made_of(rule, "securityGroupId", _GROUP)
    for group in stack.of(_GROUP):
        if group.urn is not None and any(_is_open(rule) for rule in items(dig(group.props, "egress"))):
            opened.add(group.urn)
    return opened


def _is_open(rule: object) -> bool:
    ranges = (*items(dig(rule, "cidrBlocks")), *items(dig(rule, "ipv6CidrBlocks")))
    return dig(rule, "protocol") in ("-1", "all") and _anywhere(ranges)


def _anywhere(ranges: Iterable[object]) -> bool:
    return any(each in _ANYWHERE for each in ranges)

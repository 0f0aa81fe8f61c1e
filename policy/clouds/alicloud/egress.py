"""Which machines of a stack on Alibaba Cloud have a security group that limits egress.

A basic group lets everything out but for what a rule drops, in whichever of an instance's groups it is.
"""

from __future__ import annotations

from policy.objects import dig
from policy.rules import Stack
from policy.subjects import Subject, made_of

_MACHINE = "alicloud:ecs/instance:Instance"
_GROUP = "alicloud:ecs/securityGroup:SecurityGroup"
_RULE = "alicloud:ecs/securityGroupRule:SecurityGroupRule"


def limits_egress(stack: Stack) -> bool:
    """Whether a rule for one of an instance's groups drops what others do not let out, and none lets out everything."""
    dropping, opened = set[str](), set[str]()
    for rule in stack.of(_RULE):
        if dig(rule.props, "type") == "egress" and _is_of_everything(rule):
            (dropping if dig(rule.props, "policy") == "drop" else opened).update(
                made_of(rule, "securityGroupId", _GROUP)
            )
    return any(
        groups & dropping and not groups & opened
        for groups in (made_of(machine, "securityGroups", _GROUP) for machine in stack.of(_MACHINE))
    )


def _is_of_everything(rule: Subject) -> bool:
    return bool(dig(rule.props, "ipProtocol") == "all" and dig(rule.props, "cidrIp") == "0.0.0.0/0")

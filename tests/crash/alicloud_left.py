"""All that there is of load balancing in the stand-in's account, without what the cloud chose at random."""

from __future__ import annotations

from typing import Any

from local.alicloud.account import Account
from local.alicloud.clb_balancers import CLB, LISTENER
from local.alicloud.clb_balancers import GROUP as CLB_GROUP
from local.alicloud.machines import SECURITY_GROUP
from local.alicloud.nlb_jobs import BALANCER, GROUP
from local.alicloud.nlb_jobs import LISTENER as NLB_LISTENER
from local.standin.store import Object
from tests.crash.daemon import Json

KINDS = (NLB_LISTENER, GROUP, BALANCER, LISTENER, CLB_GROUP, CLB, SECURITY_GROUP)
_RANDOM = frozenset({"id", "balancer", "address", "made", "settles", "zones", "groups", "rules", "SecurityGroupRuleId"})
_RANDOM |= {"VServerGroupId", "ServerGroupId", "backends", "servers"}


def found(account: Account) -> Json:
    """Load balancers with what hangs together with them, and what hangs together with none."""
    objects = {kind: {each["id"]: each for each in account.store.all(kind)} for kind in KINDS}
    targets, security_groups = {**objects[CLB_GROUP], **objects[GROUP]}, objects[SECURITY_GROUP]
    listeners = [*objects[LISTENER].values(), *objects[NLB_LISTENER].values()]
    load_balancers = [*objects[CLB].values(), *objects[BALANCER].values()]
    used = {_group_of(each) for each in listeners} | {group for lb in load_balancers for group in lb.get("groups", ())}
    return {
        "load_balancers": [
            {
                **_kept(lb),
                "type": "classic" if lb["id"] in objects[CLB] else "network",
                "vswitches": sorted(zone["vswitch"] for zone in lb.get("zones", ())),
                "listeners": {
                    f"{each['port']} {each['protocol'].upper()}": {
                        **_kept(each),
                        "target_group": _target_group(targets[_group_of(each)]),
                    }
                    for each in listeners
                    if each["balancer"] == lb["id"]
                },
                "security_groups": [_security_group(security_groups[each]) for each in lb.get("groups", ())],
            }
            for lb in load_balancers
        ],
        "target_groups_alone": [_target_group(each) for group, each in targets.items() if group not in used],
        "security_groups_alone": [_security_group(e) for group, e in security_groups.items() if group not in used],
    }


def _group_of(listener: Object) -> str:
    return str(listener.get("VServerGroupId") or listener["ServerGroupId"])


def _target_group(group: Object) -> Json:
    servers = group["servers"] if "servers" in group else group["backends"]
    return _kept(group) | {"targets": sorted(f"{each['ServerId']} {each['Port']} {each['Weight']}" for each in servers)}


def _security_group(group: Object) -> Json:
    return _kept(group) | {"rules": sorted(map(_kept, group["rules"]), key=str)}


def _kept(thing: Object) -> dict[str, Any]:
    return {name: value for name, value in thing.items() if name not in _RANDOM}

"""What moto, in this process, holds of an account of AWS.

moto is imported when it runs: its import takes a second, also where only other clouds are tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloud_controller.clouds.aws.attributes import target_group_defaults
from cloud_controller.clouds.aws.names import LISTENER_ATTRIBUTES_TAG
from tests.cloud_controller.clouds.aws.conftest import REGION
from tests.contract.harness import Snapshot

ACCOUNT = "123456789012"
"""The account of whoever names none."""


def snapshot() -> Snapshot:
    """What moto, in this process, holds of the account."""
    network, found = ec2(), dict[str, object]()
    groups = {each.id: each for by_id in network.groups.values() for each in by_id.values()}
    names = {group: each.name for group, each in groups.items()}
    for group in groups.values():
        rules = sorted(_rule(each, names) for each in group.ingress_rules)
        found[f"security group/{group.name}"] = (rules, _tags({t["key"]: t["value"] for t in group.get_tags()}))
    for machine in network.all_instances():
        found[f"machine/{machine.private_ip}"] = (machine.state, machine.source_dest_check)
    for table in network.route_tables.values():
        for route in table.routes:
            destination = route.destination_cidr_block or route.destination_ipv6_cidr_block
            found[f"route/{table.id}/{destination}"] = str(route.instance and route.instance.private_ip)
    balancing = elbv2()
    tags = balancing.tagging_service.get_tag_dict_for_resource
    pools = {each.arn: each.name for each in balancing.target_groups.values()}
    for lb in balancing.load_balancers.values():
        listeners = sorted(
            (
                each.port,
                each.protocol,
                str(_sorted(each.attributes)),
                pools[each.default_actions[0].data["TargetGroupArn"]],
            )
            for each in lb.listeners.values()
        )
        of_lb = (lb.scheme, sorted(names[each] for each in lb.security_groups), sorted(each.id for each in lb.subnets))
        found[f"network/{lb.name}"] = (of_lb, listeners, _sorted(lb.attrs), _tags(tags(lb.arn)))
    for pool in balancing.target_groups.values():
        targets = sorted((_address(each["Id"]), each["Port"]) for each in pool.targets.values())
        check = (pool.protocol, pool.health_check_protocol, str(pool.healthy_threshold_count))
        attributes = {**target_group_defaults(pool.protocol, pool.target_type), **pool.attributes}
        found[f"target group/{pool.name}"] = (check, targets, _sorted(attributes), _tags(tags(pool.arn)))
    for old in elb().load_balancers.values():
        ports = sorted(
            (
                each.load_balancer_port,
                each.protocol,
                each.instance_port,
                each.instance_protocol,
                sorted(each.policy_names),
            )
            for each in old.listeners
        )
        # Also of ports that no listener uses any more.
        behind = sorted((each.instance_port, sorted(each.policy_names)) for each in old.backend_server_descriptions)
        members = sorted(_address(each) for each in old.instance_ids)
        of_lb = (old.scheme, sorted(names[each] for each in old.security_groups), sorted(old.subnets))
        health = str(old.health_check and vars(old.health_check))
        # moto adds the additional ones again with every change of others.
        attributes_of = _sorted({**old.attributes, "additional_attributes": None})
        found[f"classic/{old.name}"] = (of_lb, ports, behind, members, health, attributes_of, _sorted(old.tags))
    return found


def _sorted(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return sorted((key, str(value)) for key, value in values.items())


def _tags(tags: Mapping[str, Any]) -> list[tuple[str, str]]:
    # A hint for the next read, which may be left on parts that need none.
    return [each for each in _sorted(tags) if each[0] != LISTENER_ATTRIBUTES_TAG]


def _rule(rule: Any, names: Mapping[str, str]) -> str:
    source = rule.ip_range or names.get((rule.source_group or {}).get("GroupId", ""), rule.source_group)
    return f"{rule.ip_protocol} {rule.from_port}-{rule.to_port} {source}"


def _address(machine: str) -> str:
    return str(ec2().get_instance_by_id(machine).private_ip)


def ec2() -> Any:
    from moto.ec2.models import ec2_backends

    return ec2_backends[ACCOUNT][REGION]


def instances() -> set[str]:
    return {each.id for each in ec2().all_instances()}


def elb() -> Any:
    from moto.elb.models import elb_backends

    return elb_backends[ACCOUNT][REGION]


def elbv2() -> Any:
    from moto.elbv2.models import elbv2_backends

    return elbv2_backends[ACCOUNT][REGION]

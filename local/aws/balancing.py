"""Replaces parts of moto's load balancers that differ from AWS's documentation.

- A target is an id and a port (moto: an id, so that one port of a machine replaces another).
- A listener can change to any protocol (moto: TCP alone).
- A load balancer's name is unique, and so is a listener's port (moto makes a second one).
- A target group lists the load balancers that use it now (moto: also those that used to).
- A network target group with HTTP checks accepts answers from 200 to 399 unless codes are given (moto: 200), and other
  codes when they are changed (moto: never).
- A load balancer shows whether it has a range of IPv6 addresses to send from, and SetSubnets changes that and its
  families (moto supports neither).
- A load balancer can be moved to a single subnet (moto: to two at least).
- Network interfaces can be filtered by type (moto has no such filter).
- Only one resource can be tagged at a time, although a list names it (moto: any number).
- Classic load balancers have limits too (moto: those of network load balancers alone).
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.elb.responses import ELBResponse
from moto.elbv2.exceptions import DuplicateListenerError, DuplicateLoadBalancerName, TargetNotRunning, ValidationError
from moto.elbv2.models import AvailabilityZone, ELBv2Backend, FakeHealthStatus, FakeTargetGroup
from moto.elbv2.responses import ELBV2Response


def _register(group: Any, targets: list[dict[str, Any]]) -> None:
    for target in targets:
        instance = group.ec2_backend.get_instance_by_id(target["Id"])
        if instance and instance.state != "running":
            raise TargetNotRunning(instance_id=target["Id"])
    for target in targets:
        group.targets[_key(group, target)] = {"Id": target["Id"], "Port": target.get("Port", group.port)}


def _deregister(group: Any, targets: list[dict[str, Any]]) -> None:
    for target in targets:
        group.targets.pop(_key(group, target), None)


def _deregister_terminated(group: Any, instance_ids: list[str]) -> None:
    for key in [key for key, target in group.targets.items() if target["Id"] in instance_ids]:
        del group.targets[key]


def _health_for(group: Any, target: dict[str, Any], ec2_backend: Any) -> FakeHealthStatus:
    key = (target["Id"], target.get("Port", group.port), group.health_check_port)
    if _key(group, target) not in group.targets:
        return FakeHealthStatus(*key, "unused", "Target.NotRegistered", "Target is not registered to the target group")
    instance = ec2_backend.get_instance_by_id(target["Id"])
    if instance and instance.state == "stopped":
        return FakeHealthStatus(*key, "unused", "Target.InvalidState", "Target is in the stopped state")
    return FakeHealthStatus(*key, "healthy")


def _key(group: Any, target: Mapping[str, Any]) -> str:
    return f"{target['Id']}:{target.get('Port', group.port)}"


_modify = ELBv2Backend.modify_listener


def _modify_listener(
    backend: Any, arn: str, port: str | None = None, protocol: str | None = None, *rest: Any, **more: Any
) -> Any:
    listener = _modify(backend, arn, port, None, *rest, **more)
    if protocol is not None:
        certificates = (
            (more.get("certificates") or (rest[1] if len(rest) > 1 else None) or []) if protocol == "TLS" else []
        )
        listener.protocol = protocol
        listener.certificates = [each["CertificateArn"] for each in certificates]
        listener.certificate = listener.certificates[0] if listener.certificates else None
    return listener


_listen = ELBv2Backend.create_listener


def _create_listener(backend: Any, load_balancer_arn: str, protocol: str, port: str, **settings: Any) -> Any:
    balancer = backend.load_balancers.get(load_balancer_arn)
    if balancer is not None and any(str(each.port) == str(port) for each in balancer.listeners.values()):
        raise DuplicateListenerError
    return _listen(backend, load_balancer_arn, protocol, port, **settings)


_create = ELBv2Backend.create_load_balancer


def _create_load_balancer(backend: Any, name: str, *arguments: Any, **settings: Any) -> Any:
    if any(each.name == name for each in backend.load_balancers.values()):
        raise DuplicateLoadBalancerName
    return _create(backend, name, *arguments, **settings)


_create_group = ELBv2Backend.create_target_group


def _create_target_group(backend: Any, name: str, **settings: Any) -> Any:
    if settings.get("protocol") in ("TCP", "UDP", "TLS", "TCP_UDP"):
        settings["matcher"] = settings.get("matcher") or {"HttpCode": "200-399"}
    return _create_group(backend, name, **settings)


_modify_group = ELBv2Backend.modify_target_group


def _modify_target_group(backend: Any, arn: str, *arguments: Any, **named: Any) -> Any:
    group = _modify_group(backend, arn, *arguments, **named)
    given = dict(zip(list(signature(_modify_group).parameters)[2:], arguments, strict=False)) | named
    if given.get("http_codes") is not None:
        group.matcher = {"HttpCode": given["http_codes"]}
    return group


_respond_to_creation = ELBV2Response.create_load_balancer
_respond_to_subnets = ELBV2Response.set_subnets


def _take_creation(response: Any) -> Any:
    answer = _respond_to_creation(response)
    # Not by a list: moto treats a list as finished.
    present = response.elbv2_backend.load_balancers.values()
    made = next(each for each in present if each.name == response._get_param("Name"))
    made.enable_prefix_for_ipv6_source_nat = response._get_param("EnablePrefixForIpv6SourceNat", "off")
    return answer


def _take_subnets(response: Any) -> Any:
    answer = _respond_to_subnets(response)
    changed = response.elbv2_backend.load_balancers[response._get_param("LoadBalancerArn")]
    changed.enable_prefix_for_ipv6_source_nat = response._get_param("EnablePrefixForIpv6SourceNat", "off")
    changed.ip_address_type = response._get_param("IpAddressType", changed.ip_address_type)
    return answer


_set = ELBv2Backend.set_subnets


def _set_subnets(backend: Any, arn: str, subnets: list[str], subnet_mappings: list[dict[str, Any]]) -> Any:
    wanted = [*subnets, *(each["SubnetId"] for each in subnet_mappings)]
    if len(wanted) != 1 or arn not in backend.load_balancers:
        return _set(backend, arn, subnets, subnet_mappings)
    subnet = backend.ec2_backend.get_subnet(wanted[0])
    backend.load_balancers[arn].subnets = [subnet]
    return [AvailabilityZone(subnet)]


_filter_value = NetworkInterface.get_filter_value


def _value_of_filter(interface: Any, filter_name: str, method_name: str | None = None) -> Any:
    if filter_name == "interface-type":
        return interface.interface_type
    return _filter_value(interface, filter_name, method_name)


_describe = ELBv2Backend.describe_target_groups


def _describe_target_groups(backend: Any, *arguments: Any, **named: Any) -> Any:
    leading: dict[str, list[str]] = {}
    for load_balancer in backend.load_balancers.values():
        actions = [action for each in load_balancer.listeners.values() for action in each.default_actions]
        for arn in {action.data["TargetGroupArn"] for action in actions if "TargetGroupArn" in action.data}:
            leading.setdefault(arn, []).append(load_balancer.arn)
    for arn, group in backend.target_groups.items():
        group.load_balancer_arns = leading.get(arn, [])
    return _describe(backend, *arguments, **named)


_add = ELBv2Backend.add_tags


def _add_tags(backend: Any, resource_arns: list[str], tags: list[dict[str, str]]) -> None:
    if len(resource_arns) > 1:
        raise ValidationError("Only one resource can be tagged at a time")
    _add(backend, resource_arns, tags)


def _classic_limits(_response: Any) -> ActionResult:
    """AWS's defaults."""
    limits = {"classic-load-balancers": 20, "classic-listeners": 100, "classic-registered-instances": 1000}
    return ActionResult({"Limits": [{"Name": name, "Max": str(most)} for name, most in limits.items()]})


AS_AWS: Mapping[tuple[type, str], Any] = {
    (FakeTargetGroup, "register"): _register,
    (FakeTargetGroup, "deregister"): _deregister,
    (FakeTargetGroup, "deregister_terminated_instances"): _deregister_terminated,
    (FakeTargetGroup, "health_for"): _health_for,
    (ELBv2Backend, "create_listener"): _create_listener,
    (ELBv2Backend, "modify_listener"): _modify_listener,
    (ELBv2Backend, "create_load_balancer"): _create_load_balancer,
    (ELBv2Backend, "create_target_group"): _create_target_group,
    (ELBv2Backend, "modify_target_group"): _modify_target_group,
    (ELBV2Response, "create_load_balancer"): _take_creation,
    (ELBV2Response, "set_subnets"): _take_subnets,
    (ELBv2Backend, "set_subnets"): _set_subnets,
    (NetworkInterface, "get_filter_value"): _value_of_filter,
    (ELBv2Backend, "describe_target_groups"): _describe_target_groups,
    (ELBv2Backend, "add_tags"): _add_tags,
    (ELBResponse, "describe_account_limits"): _classic_limits,
}
"""The replacement of each method."""

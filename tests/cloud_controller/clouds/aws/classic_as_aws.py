"""Where moto is not as AWS documents classic load balancers, and a test would tell of moto: what is put in its stead.

- A listener's instances may be spoken to in another protocol than its clients (moto: in the same).
- A policy can be set for the instances' port of a listener that came later (moto: only of those from the creation).
- An instance is registered once, however often it is asked for.
- A security group that a load balancer of any kind has, or another group's rule refers to, is in use (moto deletes it).
"""

from __future__ import annotations

from typing import Any

import pytest
from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models import EC2Backend
from moto.elb import models
from moto.elbv2.models import elbv2_backends


def mend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends."""
    backend = models.ELBBackend
    monkeypatch.setattr(models.FakeListener, "instance_protocol", property(_instance_protocol))
    monkeypatch.setattr(backend, "create_load_balancer", _create(backend.create_load_balancer))
    monkeypatch.setattr(backend, "create_load_balancer_listeners", _listen(backend.create_load_balancer_listeners))
    monkeypatch.setattr(backend, "register_instances", _register(backend.register_instances))
    monkeypatch.setattr(EC2Backend, "delete_security_group", _delete_group(EC2Backend.delete_security_group))


def _instance_protocol(listener: Any) -> str:
    return str(getattr(listener, "behind", listener.protocol))


def _create(original: Any) -> Any:
    def create_load_balancer(backend: Any, name: str, zones: Any, ports: Any, **more: Any) -> Any:
        made = original(backend, name, zones, ports, **more)
        _remember(made, ports)
        return made

    return create_load_balancer


def _listen(original: Any) -> Any:
    def create_load_balancer_listeners(backend: Any, name: str, ports: Any) -> Any:
        made = original(backend, name, ports)
        _remember(made, ports)
        known = {int(each.instance_port) for each in made.backends}
        new = {int(each["InstancePort"]) for each in ports} - known
        made.backends.extend(models.FakeBackend(instance_port=port) for port in sorted(new))  # type: ignore[arg-type]
        return made

    return create_load_balancer_listeners


def _remember(load_balancer: Any, ports: Any) -> None:
    behind = {int(each["LoadBalancerPort"]): each.get("InstanceProtocol", each["Protocol"]) for each in ports}
    for listener in load_balancer.listeners:
        if int(listener.load_balancer_port) in behind:
            listener.behind = behind[int(listener.load_balancer_port)]


def _register(original: Any) -> Any:
    def register_instances(backend: Any, load_balancer_name: str, instance_ids: Any, **more: Any) -> Any:
        known = backend.get_load_balancer(load_balancer_name).instance_ids
        return original(backend, load_balancer_name, [each for each in instance_ids if each not in known], **more)

    return register_instances


def _delete_group(original: Any) -> Any:
    def delete_security_group(backend: Any, name: str | None = None, group_id: str | None = None) -> Any:
        account, region = backend.account_id, backend.region_name
        kinds = (models.elb_backends[account][region], elbv2_backends[account][region])
        using = {lb.name for kind in kinds for lb in kind.load_balancers.values() if group_id in lb.security_groups}
        for each in (each for groups in backend.groups.values() for each in groups.values() if each.id != group_id):
            rules = (*each.ingress_rules, *each.egress_rules)
            if any((rule.source_group or {}).get("GroupId") == group_id for rule in rules):
                using.add(each.name)
        if using:
            raise DependencyViolationError(f"resource {group_id} has a dependent object: {', '.join(sorted(using))}")
        return original(backend, name, group_id)

    return delete_security_group

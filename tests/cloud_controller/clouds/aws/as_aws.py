"""Where moto is not as AWS documents it, and a test would tell of moto: what is put in its stead.

- A target is an id and a port (moto: an id, so that one port's removal takes the other's place, too).
- A listener of a network load balancer can become one of any of its protocols (moto: TCP alone).
- A load balancer's name is taken while it is there (moto makes a second one).
"""

from __future__ import annotations

from typing import Any

import pytest
from moto.elbv2 import models
from moto.elbv2.exceptions import DuplicateLoadBalancerName, TargetNotRunning


def mend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends."""
    monkeypatch.setattr(models.FakeTargetGroup, "register", _register)
    monkeypatch.setattr(models.FakeTargetGroup, "deregister", _deregister)
    monkeypatch.setattr(models.FakeTargetGroup, "health_for", _health_for)
    monkeypatch.setattr(models.ELBv2Backend, "modify_listener", _modify_listener(models.ELBv2Backend.modify_listener))
    monkeypatch.setattr(
        models.ELBv2Backend, "create_load_balancer", _create_load_balancer(models.ELBv2Backend.create_load_balancer)
    )


def _register(group: Any, targets: list[dict[str, Any]]) -> None:
    for target in targets:
        instance = group.ec2_backend.get_instance_by_id(target["Id"])
        if instance and instance.state != "running":
            raise TargetNotRunning(instance_id=target["Id"])
    for target in targets:
        port = target.get("Port", group.port)
        group.targets[f"{target['Id']}:{port}"] = {"Id": target["Id"], "Port": port}


def _deregister(group: Any, targets: list[dict[str, Any]]) -> None:
    for target in targets:
        group.targets.pop(f"{target['Id']}:{target.get('Port', group.port)}", None)


def _health_for(group: Any, target: dict[str, Any], _ec2_backend: Any) -> models.FakeHealthStatus:
    return models.FakeHealthStatus(target["Id"], target["Port"], group.health_check_port, "healthy")


def _modify_listener(original: Any) -> Any:
    def modify_listener(
        backend: Any, arn: str, port: Any = None, protocol: str | None = None, *args: Any, **kw: Any
    ) -> Any:
        listener = original(backend, arn, port, None, *args, **kw)
        if protocol is not None:
            listener.protocol = protocol
            certificates = kw.get("certificates") or (args[1] if len(args) > 1 else None) or []
            listener.certificates = [each["CertificateArn"] for each in certificates]
            listener.certificate = listener.certificates[0] if listener.certificates else None
        return listener

    return modify_listener


def _create_load_balancer(original: Any) -> Any:
    def create_load_balancer(backend: Any, name: str, *args: Any, **kw: Any) -> Any:
        if any(each.name == name for each in backend.load_balancers.values()):
            raise DuplicateLoadBalancerName
        return original(backend, name, *args, **kw)

    return create_load_balancer

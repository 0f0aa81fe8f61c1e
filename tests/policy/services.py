"""For the tests of rules about Services: the clusters that they are in."""

from __future__ import annotations

from typing import Any

from cloud_stacks.policies.host import AnalyzedResource, Finding, PolicyHost
from tests.policy_objects import ccm, resource, service

IMAGES = {"ours": "registry.example/cloud-controller:0.1.0", "vendor": "registry.example/cloud-controller-manager:v1"}
EKS, ACK = "aws:eks/cluster:Cluster", "alicloud:cs/managedKubernetes:ManagedKubernetes"
LEGACY_INTERNAL = "service.beta.kubernetes.io/aws-load-balancer-internal"


def ours(cloud: str, *flags: Any, name: str = "ccm") -> AnalyzedResource:
    """Our cloud controller manager, for this cloud."""
    return ccm(name=name, container={"image": IMAGES["ours"], "args": ["run", f"--cloud={cloud}", *flags]})


def vendors(cloud: str, *flags: str, name: str = "ccm") -> AnalyzedResource:
    """The vendor's, by the name that upstream has for the cloud."""
    return ccm(name=name, container={"image": IMAGES["vendor"], "args": [f"--cloud-provider={cloud}", *flags]})


def managed(kind: str) -> AnalyzedResource:
    """A managed cluster."""
    return resource(kind, {}, "managed")


def said(pack: PolicyHost, rule: str, *stack: AnalyzedResource) -> list[Finding]:
    """What one rule finds in the stack. A Service depends on its controllers."""
    return [finding for finding in pack.analyze_stack(stack) if finding.policy == rule]


def port(number: Any = 443, name: str | None = None, **more: Any) -> dict[str, Any]:
    """A port of a Service."""
    return {"name": name or f"p{number}", "port": number, "protocol": "TCP", **more}


def balanced(name: str = "web", *ports: Any, annotations: Any = None, **spec: Any) -> AnalyzedResource:
    """A LoadBalancer Service with these ports."""
    return service(name, spec={"ports": [*(ports or (port(80),))], **spec}, annotations=annotations)

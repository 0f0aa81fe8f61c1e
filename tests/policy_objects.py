"""For the tests of the policy pack: its server, and resources that hold to every rule but for what a test changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cloud_stacks.policies.host import AnalyzedResource, Finding, PolicyHost
from local.plugins.values import PropertyMap

PACK = Path(__file__).parents[1] / "policy"
EXEMPT = "exempt"
"""The name of objects in kube-system that every rule is told to leave alone."""

TOLERATION = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
_PROBE = {"httpGet": {"path": "/healthz", "port": 10258, "scheme": "HTTPS"}}
CONTAINER: PropertyMap = {
    "name": "manager",
    "image": "registry.example/cloud-controller:0.1.0",
    "args": ["run", "--cloud=mycloud"],
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    },
}
POD_CONTEXT: PropertyMap = {
    "runAsNonRoot": True,
    "runAsUser": 65534,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def exemption(object: str, until: str = "2999-12-31") -> dict[str, str]:
    """An entry of a rule's setting `exempt`."""
    return {"object": object, "reason": "a test", "until": until}


def start(policy_config: dict[str, Any]) -> PolicyHost:
    """The pack's real server; `policy_config` as in a --policy-pack-config file."""
    return PolicyHost.start(
        PACK,
        engine_address="127.0.0.1:1",
        project="sample",
        stack="dev",
        dry_run=True,
        config={},
        policy_config=policy_config,
    )


def resource(kind: str, props: PropertyMap, name: str = "r", **options: Any) -> AnalyzedResource:
    urn = f"urn:pulumi:dev::sample::{kind}::{name}"
    return AnalyzedResource(type=kind, urn=urn, name=name, properties=props, **options)


def without(props: PropertyMap, *keys: str) -> PropertyMap:
    return {key: value for key, value in props.items() if key not in keys}


def workload(spec: PropertyMap, kind: str = "DaemonSet", name: Any = "ccm") -> AnalyzedResource:
    props = {"metadata": {"name": name, "namespace": "kube-system"}, "spec": spec}
    return resource(f"kubernetes:apps/v1:{kind}", props, name if isinstance(name, str) else "r")


def ccm(
    *,
    container: PropertyMap | None = None,
    containers: Any = None,
    name: Any = "ccm",
    kind: str = "DaemonSet",
    spec: PropertyMap | None = None,
    **pod: Any,
) -> AnalyzedResource:
    """A cloud controller manager: `container` replaces fields of its container, `pod` of its pod's spec."""
    template = {
        "containers": [{**CONTAINER, **(container or {})}] if containers is None else containers,
        "tolerations": [TOLERATION],
        "priorityClassName": "system-cluster-critical",
        "securityContext": POD_CONTEXT,
        **pod,
    }
    return workload({"template": {"spec": template}, **(spec or {})}, kind, name)


def patch(whole: AnalyzedResource) -> AnalyzedResource:
    """The object as a patch of one that others made."""
    return replace(whole, type=f"{whole.type}Patch")


def service(
    name: str = "web",
    type: Any = "LoadBalancer",
    spec: PropertyMap | None = None,
    annotations: Any = None,
    **options: Any,
) -> AnalyzedResource:
    """A Service of type LoadBalancer, open to one office."""
    metadata: PropertyMap = {"name": name, "namespace": "kube-system"}
    if annotations is not None:
        metadata["annotations"] = annotations
    whole: PropertyMap = {"type": type, "loadBalancerSourceRanges": ["192.0.2.0/24"], **(spec or {})}
    return resource("kubernetes:core/v1:Service", {"metadata": metadata, "spec": whole}, name, **options)


def of(findings: Sequence[Finding], rule: str) -> list[str]:
    """The levels of what one rule found; `not-evaluated` among them."""
    return [finding.level for finding in findings if finding.policy == rule]

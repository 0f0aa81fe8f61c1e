"""A way to damage a production stack for each rule that guards it: what the rule holds is changed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from local.plugins.values import PropertyMap


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is changed in a stack, and the rule that must say so."""

    rule: str
    stack: str
    type: str
    """Pulumi's type of the resource to change: the first one whose name ends with `name`."""
    change: Callable[[Any], None]
    """Changes its properties in place."""
    name: str = ""
    every: bool = False
    """Whether to change all such resources."""
    also: frozenset[str] = frozenset()
    """Other rules that rightly have something to say about the same change."""
    becomes: str = ""
    """The resource's type after the change; empty: the same."""
    alone: bool = False
    """Whether the resource loses its dependencies and its parent."""
    beside: Mutant | None = None
    """Another resource of the stack that changes with it."""

    def is_of(self, type: str, name: str) -> bool:
        """Whether the resource is the one to change."""
        return type == self.type and name.endswith(self.name)

    def damaged(self, properties: PropertyMap) -> PropertyMap:
        """The properties after the change."""
        changed = deepcopy(properties)
        self.change(changed)
        return changed


DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
SERVICE = "kubernetes:core/v1:Service"


def _pod(properties: Any) -> Any:
    return properties["spec"]["template"]["spec"]


def _container(properties: Any) -> Any:
    return _pod(properties)["containers"][0]


def _annotate(properties: Any, name: str, value: str) -> None:
    properties["metadata"].setdefault("annotations", {})[f"service.beta.kubernetes.io/{name}"] = value


def _untag(properties: Any, part: str) -> None:
    for tags in (properties["tags"], properties.get("tagsAll", {})):
        for name in [each for each in tags if part in each]:
            del tags[name]


MUTANTS = [
    Mutant(
        "ccm-workload-tolerate-uninitialized",
        "mycloud-prod",
        DAEMON_SET,
        lambda p: _pod(p).update(tolerations=[t for t in _pod(p)["tolerations"] if "uninit" not in str(t.get("key"))]),
    ),
    Mutant(
        "ccm-workload-elect-leader",
        "aws-staging",
        DAEMON_SET,
        lambda p: _container(p)["args"].append("--leader-elect=0"),
    ),
    Mutant("ccm-workload-set-probes", "mycloud-prod", DAEMON_SET, lambda p: _container(p).pop("livenessProbe")),
    Mutant("ccm-workload-set-resources", "mycloud-ha", DAEMON_SET, lambda p: _container(p)["resources"].pop("limits")),
    Mutant("ccm-workload-set-priority", "alicloud-staging", DAEMON_SET, lambda p: _pod(p).pop("priorityClassName")),
    Mutant("lb-service-depend-on-ccm", "mycloud-prod", SERVICE, lambda _: None, alone=True),
    Mutant(
        "lb-service-check-health", "mycloud-prod", SERVICE, lambda p: _annotate(p, "dlb-health-check-protocol", "NONE")
    ),
    Mutant("subnet-tag-load-balancer-role", "aws-prod", "aws:ec2/subnet:Subnet", lambda p: _untag(p, "/role/")),
]

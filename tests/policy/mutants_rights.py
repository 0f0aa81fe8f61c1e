"""Ways to damage the rights in a production stack: of the CCM in Kubernetes, and of roles in the clouds."""

from __future__ import annotations

from typing import Any

from tests.policy.mutants import DAEMON_SET, Mutant

_GROUP = "kubernetes:rbac.authorization.k8s.io/v1"


def _rule(properties: Any, resource: str) -> Any:
    return next(rule for rule in properties["rules"] if rule["resources"] == [resource])


MUTANTS = [
    Mutant(
        "ccm-rbac-grant-needs",
        "mycloud-prod",
        f"{_GROUP}:ClusterRole",
        lambda p: _rule(p, "services/status").update(verbs=["get"]),
        also=frozenset({"ccm-rbac-avoid-excess"}),
    ),
    Mutant(
        "ccm-rbac-grant-needs",
        "aws-staging",
        f"{_GROUP}:ClusterRoleBinding",
        lambda p: p["subjects"][0].update(namespace="default"),
    ),
    Mutant(
        "ccm-rbac-avoid-excess",
        "aws-prod",
        f"{_GROUP}:ClusterRole",
        lambda p: _rule(p, "nodes")["verbs"].append("delete"),
    ),
    Mutant(
        "ccm-rbac-avoid-excess",
        "aws-staging",
        DAEMON_SET,
        lambda p: p["spec"]["template"]["spec"]["containers"][0]["args"].append(
            "--controllers=cloud-node-controller,service-lb-controller,node-route-controller"
        ),
    ),
]

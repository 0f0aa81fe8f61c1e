"""Ways to damage the rights in a production stack: of the CCM in Kubernetes, and of roles in the clouds."""

from __future__ import annotations

import json
from typing import Any

from tests.policy.mutants import DAEMON_SET, Mutant

_GROUP = "kubernetes:rbac.authorization.k8s.io/v1"
_CCM = "cloud-controller-manager"
"""What the CCM's own roles are named; Prometheus has one of its own, to read its metrics."""


def _rule(properties: Any, resource: str) -> Any:
    return next(rule for rule in properties["rules"] if rule["resources"] == [resource])


def _allow_more(properties: Any, key: str, action: str) -> None:
    """Add an operation to the first statement of a policy document."""
    document = json.loads(properties[key])
    document["Statement"][0]["Action"] = [*document["Statement"][0]["Action"], action]
    properties[key] = json.dumps(document)


def _without_condition(properties: Any, key: str) -> None:
    document = json.loads(properties[key])
    del document["Statement"][0]["Condition"]
    properties[key] = json.dumps(document)


def _trust_all(properties: Any, key: str) -> None:
    document = json.loads(properties[key])
    document["Statement"][0]["Principal"] = {"RAM": ["*"]}
    properties[key] = json.dumps(document)


_EXCESS = frozenset({"ccm-rbac-avoid-excess"})
_SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}

MUTANTS = [
    Mutant(
        "ccm-rbac-grant-needs",
        "mycloud-prod",
        f"{_GROUP}:ClusterRole",
        lambda p: _rule(p, "services/status").update(verbs=["get"]),
        name=_CCM,
        also=_EXCESS,
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
        name=_CCM,
    ),
    Mutant(
        "ccm-rbac-avoid-excess",
        "aws-staging",
        DAEMON_SET,
        lambda p: p["spec"]["template"]["spec"]["containers"][0]["args"].append(
            "--controllers=cloud-node-controller,service-lb-controller,node-route-controller"
        ),
    ),
    Mutant(
        "rbac-role-avoid-wildcards",
        "mycloud-ha",
        f"{_GROUP}:ClusterRole",
        lambda p: _rule(p, "nodes").update(verbs=["*"]),
        name=_CCM,
        also=_EXCESS,
    ),
    Mutant(
        "rbac-role-avoid-powers",
        "alicloud-staging",
        f"{_GROUP}:ClusterRole",
        lambda p: p["rules"].append(_SECRETS),
        name=_CCM,
        also=_EXCESS,
    ),
    Mutant(
        "rbac-binding-avoid-broad-roles",
        "mycloud-prod",
        f"{_GROUP}:ClusterRoleBinding",
        lambda p: p["roleRef"].update(name="cluster-admin"),
        also=_EXCESS,
    ),
    Mutant(
        "iam-policy-avoid-wildcards",
        "aws-prod",
        "aws:iam/policy:Policy",
        lambda p: _allow_more(p, "policy", "EC2:?*"),
    ),
    Mutant(
        "iam-policy-avoid-wildcards",
        "aws-staging",
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        lambda p: p.update(policyArn="arn:aws:iam::aws:policy/AdministratorAccess"),
    ),
    Mutant(
        "iam-role-limit-trust",
        "aws-prod",
        "aws:iam/role:Role",
        lambda p: _without_condition(p, "assumeRolePolicy"),
        "cloud-controller-manager",
    ),
    Mutant(
        "ram-policy-avoid-wildcards",
        "alicloud-staging",
        "alicloud:ram/policy:Policy",
        lambda p: _allow_more(p, "policyDocument", "slb:*"),
        "control-plane",
    ),
    Mutant(
        "ram-role-limit-trust",
        "alicloud-staging",
        "alicloud:ram/role:Role",
        lambda p: _trust_all(p, "assumeRolePolicyDocument"),
    ),
]

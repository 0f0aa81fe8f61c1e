"""What NetworkPolicies limit, as Kubernetes evaluates them."""

from __future__ import annotations

from typing import Final

from policy.label_selectors import selects
from policy.objects import dig, each, items
from policy.subjects import Subject
from policy.workloads import pod_labels

NETWORK_POLICY: Final = "networking.k8s.io/NetworkPolicy"


def limits_egress(policy: Subject, workload: Subject) -> bool:
    """Whether the workload's pods reach only what this policy, or another one, lets them. Raises UnknownValueError."""
    if (policy.cluster, policy.namespace) != (workload.cluster, workload.namespace):
        return False
    spec = dig(policy.props, "spec")
    if not selects(dig(spec, "podSelector"), pod_labels(workload)):
        return False
    types = [*items(dig(spec, "policyTypes"))]
    # Without types, a policy is about egress only if it has rules for it.
    return "Egress" in types if types else bool([*each(dig(spec, "egress"))])

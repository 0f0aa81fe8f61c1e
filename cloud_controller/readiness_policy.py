"""The admission policy that adds readiness gates to the pods of Services with load balancers. Pure.

It runs in the API server (Kubernetes 1.36 or later): no webhook, and a failure of the policy lets the pod through
without a gate (`failurePolicy: Ignore`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cloud_controller.load_balancers.readiness_gates import ANNOTATION, ReadinessGates

NAME = "cloud-controller-readiness-gates"
KINDS = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
_API = "admissionregistration.k8s.io/v1"

Manifest = dict[str, Any]


def make(gates: ReadinessGates, labels: dict[str, str], *, without_class: bool = True) -> tuple[Manifest, Manifest]:
    """The policy and its binding. `without_class`: whether Services without a class may get gates by default."""
    classes = gates.classes if without_class else gates.classes - {None}
    metadata = {"name": NAME, "labels": labels}
    policy = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            # The policy is evaluated for every Service of the pod's namespace.
            "paramKind": {"apiVersion": "v1", "kind": "Service"},
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
                ]
            },
            "matchConditions": [
                {"name": "the-service-has-a-load-balancer", "expression": _HAS_LOAD_BALANCER},
                {"name": "the-service-asks-for-gates", "expression": _asks(gates, classes)},
                {"name": "the-service-selects-the-pod", "expression": _SELECTS},
                {"name": "the-pod-has-no-gate-yet", "expression": _has_no_gate(gates)},
            ],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _patch(gates.condition)}}],
        },
    }
    binding = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": NAME, "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}},
    }
    return policy, binding


_HAS_LOAD_BALANCER = "params.spec.type == 'LoadBalancer' && !has(params.metadata.deletionTimestamp)"

_SELECTS = (
    "has(params.spec.selector) && size(params.spec.selector) > 0 && has(object.metadata.labels)"
    " && params.spec.selector.all(key, key in object.metadata.labels"
    " && object.metadata.labels[key] == params.spec.selector[key])"
)


def _asks(gates: ReadinessGates, classes: Collection[str | None]) -> str:
    """The first annotation that the Service has decides; without one, its class."""
    named = ", ".join(f"'{each}'" for each in sorted(each for each in classes if each is not None))
    without_class = "true" if None in classes else "false"
    found = f"(has(params.spec.loadBalancerClass) ? params.spec.loadBalancerClass in [{named}] : {without_class})"
    for name in reversed((ANNOTATION, *gates.annotations)):
        has = f"has(params.metadata.annotations) && '{name}' in params.metadata.annotations"
        found = f"({has} ? params.metadata.annotations['{name}'] == 'true' : {found})"
    return found


def _has_no_gate(gates: ReadinessGates) -> str:
    same = f"gate.conditionType == '{gates.condition}'"
    if gates.service_prefix:
        same += f" || gate.conditionType == '{gates.service_prefix}' + params.metadata.name"
    return f"!has(object.spec.readinessGates) || !object.spec.readinessGates.exists(gate, {same})"


def _patch(condition: str) -> str:
    # Values are plain maps: a value `Object.spec.readinessGates{…}` makes the API server of 1.36 panic, which even
    # `failurePolicy: Ignore` does not catch. `ApplyConfiguration` fails for pods that have gates.
    gate = f'{{"conditionType": "{condition}"}}'
    append = f'JSONPatch{{op: "add", path: "/spec/readinessGates/-", value: {gate}}}'
    first = f'JSONPatch{{op: "add", path: "/spec/readinessGates", value: [{gate}]}}'
    return f"has(object.spec.readinessGates) ? [{append}] : [{first}]"

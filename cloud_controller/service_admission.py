"""Admission policies by which the API server checks a Service's annotations at `kubectl apply`. Pure.

Made from the catalogue that the parser reads, so both say the same, in the same words, apart from the nearest name,
which CEL cannot compute. What depends on other objects or on the cloud (a certificate that does not exist, a port of a
shared load balancer) only the controller can tell.

They run in the API server (Kubernetes 1.30 or later) without a webhook. A policy that cannot be evaluated lets the
Service through (`failurePolicy: Ignore`): the controller refuses it then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from cloud_controller.load_balancers import admission_checks
from cloud_controller.load_balancers.admission_checks import ANNOTATIONS
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.nameable import Nameable
from cloud_controller.load_balancers.refusals import Refusal
from cloud_controller.load_balancers.sharing import NOT_SHARED, Sharing
from cloud_controller.load_balancers.terms import literal

NAME = "cloud-controller-services"
OPTION = "--service-admission"
LABEL = "cloud-controller/service-admission"
"""On a namespace: the mode that counts there."""
_API = "admissionregistration.k8s.io/v1"

Manifest = dict[str, Any]


class Admission(StrEnum):
    """What the API server does with a Service that the controller would refuse."""

    DENY = "deny"
    WARN = "warn"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the administrator's options and cloud config let annotations do. `of_config`: rules by kind."""

    nameable: Nameable = field(default_factory=Nameable)
    sharing: Sharing = Sharing.TAGGED
    of_config: Mapping[str, tuple[Refusal, ...]] = field(default_factory=dict)

    def refusals(self, catalogue: Catalogue) -> Iterator[Refusal]:
        """The rules by which the API server refuses what they forbid."""
        yield from self.of_config.get(catalogue.kind, ())
        yield from self.nameable.refusals(catalogue.namings)
        shares = catalogue.by_argument.get("id")
        if self.sharing is Sharing.OFF and shares and not shares.ignored:
            yield NOT_SHARED


def make(
    catalogue: Catalogue,
    classes: Collection[str | None],
    mode: Admission,
    labels: dict[str, str],
    of_others: Mapping[str, Collection[str]] | None = None,
    limits: Limits | None = None,
) -> tuple[Manifest, ...]:
    """The policies, each with its bindings.

    - `classes`: the served values of `spec.loadBalancerClass`; None: Services without a class.
    - `mode`: where a namespace's label says nothing else.
    - `of_others`: annotations with the values that leave a Service without a class to another controller.
    - `limits`: what the administrator does not allow.
    """
    made: list[Manifest] = []
    for kind in catalogue.kinds or (catalogue,):
        kind = replace(kind, refusals=(*kind.refusals, *(limits or Limits()).refusals(kind)))
        served = set(classes) & set(kind.classes) if kind.classes else set(classes)
        if served:
            name = f"{NAME}-{kind.kind.lower()}" if kind.kind else NAME
            made += [_policy(name, kind, served, labels, of_others or {})]
            made += [_binding(name, each, mode, labels) for each in (Admission.DENY, Admission.WARN)]
    return tuple(made)


def _binding(name: str, action: Admission, default: Admission, labels: dict[str, str]) -> Manifest:
    """The binding for namespaces in which this mode counts."""
    others = sorted(each.value for each in Admission if each is not action)
    # NotIn also selects namespaces without the label.
    operator, values = ("NotIn", others) if action is default else ("In", [action.value])
    where = {"key": LABEL, "operator": operator, "values": values}
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"{name}-{action}", "labels": labels},
        "spec": {
            "policyName": name,
            "validationActions": [action.capitalize()],
            "matchResources": {"namespaceSelector": {"matchExpressions": [where]}},
        },
    }


def _policy(
    name: str,
    catalogue: Catalogue,
    classes: Collection[str | None],
    labels: dict[str, str],
    of_others: Mapping[str, Collection[str]],
) -> Manifest:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"], "operations": ["CREATE", "UPDATE"]}
    conditions = {
        "it-wants-a-load-balancer": "object.spec.type == 'LoadBalancer' && !has(object.metadata.deletionTimestamp)",
        "its-class-is-served": _is_served(classes),
        # What else is written, such as finalizers, must not fail by what was there before.
        "its-annotations-or-spec-change": "oldObject == null || oldObject.spec != object.spec"
        f" || {ANNOTATIONS} != {ANNOTATIONS.replace('object', 'oldObject')}",
    }
    if of_others:
        conditions["no-annotation-leaves-it-to-another-controller"] = (
            f"has(object.spec.loadBalancerClass) || {ANNOTATIONS}.all(n, !({_is_of_another(of_others)}))"
        )
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "failurePolicy": "Ignore",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": key, "expression": text} for key, text in conditions.items()],
            "variables": [
                {"name": key, "expression": text} for key, text in admission_checks.variables(catalogue).items()
            ],
            "validations": [
                {"expression": f"variables.{found}.size() == 0", "messageExpression": text}
                for found, text in admission_checks.sentences(catalogue).items()
            ],
        },
    }


def _is_served(classes: Collection[str | None]) -> str:
    named = literal(tuple(sorted(each for each in classes if each is not None)))
    without_class = str(None in classes).lower()
    return f"has(object.spec.loadBalancerClass) ? object.spec.loadBalancerClass in {named} : {without_class}"


def _is_of_another(of_others: Mapping[str, Collection[str]]) -> str:
    value = "object.metadata.annotations[n].trim()"
    return " || ".join(
        f"(n == {literal(name)} && {value} in {literal(tuple(values))})" for name, values in of_others.items()
    )

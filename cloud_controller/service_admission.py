"""Admission policies by which the API server answers for a Service's annotations at `kubectl apply`. Pure.

Made from the catalogue that the parser reads, so both say the same, in the same words, apart from the nearest name,
which CEL cannot compute. What depends on other objects or on the cloud (a certificate that does not exist, a port of a
shared load balancer) only the controller can tell.

They run in the API server (Kubernetes 1.30 or later) without a webhook. A policy that cannot be evaluated lets the
Service through (`failurePolicy: Ignore`): the controller refuses it then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from cloud_controller.load_balancers import restrictions
from cloud_controller.load_balancers.annotation import SHOWN, Annotation
from cloud_controller.load_balancers.catalogue import Catalogue

NAME = "cloud-controller-services"
OPTION = "--service-admission"
LABEL = "cloud-controller/service-admission"
"""On a namespace: the mode that counts there."""
_API = "admissionregistration.k8s.io/v1"
_DIGITS = 18
"""Of an integer in CEL; no bound in a catalogue has more."""

Manifest = dict[str, Any]


class Admission(StrEnum):
    """What the API server does with a Service that the controller would refuse."""

    DENY = "deny"
    WARN = "warn"
    OFF = "off"


def make(
    catalogue: Catalogue,
    classes: Collection[str | None],
    mode: Admission,
    labels: dict[str, str],
    of_others: Mapping[str, Collection[str]] | None = None,
) -> tuple[Manifest, ...]:
    """The policies, each with its bindings.

    - `classes`: the served values of `spec.loadBalancerClass`; None: Services without a class.
    - `mode`: where a namespace's label says nothing else.
    - `of_others`: annotations with the values that leave a Service without a class to another controller.
    """
    made: list[Manifest] = []
    for kind in catalogue.kinds or (catalogue,):
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
        f" || {_ANNOTATIONS} != {_ANNOTATIONS.replace('object', 'oldObject')}",
    }
    if of_others:
        conditions["no-annotation-leaves-it-to-another-controller"] = (
            f"has(object.spec.loadBalancerClass) || {_ANNOTATIONS}.all(n, !({_is_of_another(of_others)}))"
        )
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "failurePolicy": "Ignore",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": key, "expression": text} for key, text in conditions.items()],
            "variables": _variables(catalogue),
            "validations": [
                {"expression": f"variables.{found}.size() == 0", "messageExpression": text}
                for found, text in _sentences(catalogue).items()
            ],
        },
    }


_ANNOTATIONS = "(has(object.metadata.annotations) ? object.metadata.annotations : {})"


def _is_served(classes: Collection[str | None]) -> str:
    named = _list(each for each in classes if each is not None)
    without_class = str(None in classes).lower()
    return f"has(object.spec.loadBalancerClass) ? object.spec.loadBalancerClass in {named} : {without_class}"


def _is_of_another(of_others: Mapping[str, Collection[str]]) -> str:
    value = "object.metadata.annotations[n].trim()"
    return " || ".join(f"(n == {_text(name)} && {value} in {_list(values)})" for name, values in of_others.items())


def _sentences(catalogue: Catalogue) -> dict[str, str]:
    """The variables that list what is wrong, each with the expression of its sentence."""
    unknown = f": unknown on {catalogue.cloud}"
    restricts = f": {restrictions.OPEN} (allowed: {restrictions.INSTEAD_OF_OPEN})"
    public = f": {restrictions.PUBLIC} (allowed: {restrictions.INSTEAD_OF_PUBLIC})"
    return {
        "unknown": f"'annotation ' + variables.unknown[0] + {_text(unknown)}",
        "restricting": f"'annotation ' + variables.restricting[0] + {_text(restricts)}",
        "private": f"'annotation ' + variables.private[0] + {_text(public)}",
        "faults": "variables.faults.join('; ')",
    }


def _variables(catalogue: Catalogue) -> list[Manifest]:
    """Names that the catalogue does not have, of the cloud and of others, and what is wrong with those that it has."""
    of_cloud = " || ".join(f"n.startsWith({_text(prefix)})" for prefix in catalogue.prefixes)
    families = [_family(entry) for entry in catalogue if entry.suffix]
    known = f"n in {_list(catalogue.by_name)}" + "".join(f" || n.matches({_text(each)})" for each in families)
    words = "n.lowerAscii().findAll('[a-z0-9]+').join('')"
    value = "variables.given[n].trim().lowerAscii()"
    by_value = f"{words}.contains('loadbalancer') && {value} in {_list(restrictions.INTERNAL_VALUES)}"
    found = {
        "given": _ANNOTATIONS,
        "unknown": f"variables.given.filter(n, ({of_cloud}) && !({known}))",
        "others": f"variables.given.filter(n, !({of_cloud}) && !({known})"
        f" && !({value} in {_list(restrictions.SWITCHED_OFF)}))",
        "internal": _is_internal(catalogue),
        "restricting": f"variables.others.filter(n, {words}.matches({_text(restrictions.CLIENTS.pattern)}))",
        "private": f"variables.others.filter(n, !variables.internal"
        f" && ({words}.matches({_text(restrictions.INTERNAL.pattern)}) || ({by_value})))",
        "rules": f"[{', '.join(_map(row) for entry in catalogue for row in _rows(entry))}]",
        "faults": f"variables.rules.filter(r, {_wrong(catalogue)}.size() > 0)"
        f".map(r, {_wrong(catalogue)}.map(n, 'annotation ' + (has(r.names) ? r.names.split(' ')[0] : n)"
        f" + ': ' + {_SHOWN} + r.why)[0])",
    }
    return [{"name": name, "expression": text} for name, text in found.items()]


_SHOWN = (
    f"\"'\" + [variables.given[n].replace('\\n', ' ')].map(t, t.size() <= {SHOWN} ? t : t.substring(0, {SHOWN})"
    " + '…')[0] + \"'\""
)
"""The value as errors quote it. A message with a line break would be dropped."""


def _is_internal(catalogue: Catalogue) -> str:
    """Whether an annotation of the cloud makes the load balancer internal."""
    found = []
    for entry in catalogue:
        if entry.sets in restrictions.SCHEMES and not entry.ignored:
            words = ("true", *entry.true_words) if entry.type is bool else restrictions.INTERNAL_VALUES
            value = "variables.given[n].trim()" + (".lowerAscii()" if entry.any_case else "")
            names = _list((entry.name, *entry.aliases))
            found.append(f"{names}.exists(n, n in variables.given && {value} in {_list(words)})")
    return " || ".join(found) or "false"


def _wrong(catalogue: Catalogue) -> str:
    """The names of the annotations that the rule `r` refuses."""
    present = (
        "(has(r.family) ? variables.given.filter(n, n.matches(r.family))"
        " : r.names.split(' ').filter(n, n in variables.given))"
    )
    refused = (
        "has(r.refused) ? v == r.refused : has(r.forbidden) ? v.matches(r.forbidden) : !v.matches(r.valid)"
        " || (has(r.low) && int(v) < int(r.low)) || (has(r.high) && int(v) > int(r.high))"
    )
    if catalogue.empty_is_unset:
        refused = f"v != '' && ({refused})"
    return f"{present}.filter(n, [variables.given[n].trim()].exists(v, {refused}))"


def _rows(entry: Annotation) -> Iterator[dict[str, str]]:
    """A rule for each refused value with its reason, and one for what else is no value.

    `names` (or the pattern `family` of the names): whom it concerns; `valid`: the pattern of its values; `low`, `high`:
    their bounds; `refused`: a value; `forbidden`: a pattern of such; `why`: what is wrong, after the quoted value.
    """
    who = {"family": _family(entry)} if entry.suffix else {"names": " ".join((entry.name, *entry.aliases))}
    if entry.ignored and entry.restricts:
        allowed = ", ".join(entry.harmless) or "none"
        yield {**who, "valid": _any_of(entry.harmless), "why": f": {entry.ignored} (allowed: {allowed})"}
        return
    for value, why in entry.refused.items():
        yield {**who, "refused": value, "why": f": {why} (allowed: {entry.allowed_text or 'none'})"}
    if entry.ignored:
        return
    bounds = {key: str(bound) for key, bound in (("low", entry.minimum), ("high", entry.maximum)) if bound is not None}
    # What a rule of its own refuses is not refused twice.
    valid = f"{_valid(entry)}|{_any_of(entry.refused)}" if entry.refused else _valid(entry)
    why = f" is not a valid value (allowed: {entry.allowed_text})"
    yield {**who, "valid": valid, **({} if entry.type is not int else bounds), "why": why}
    if entry.not_pattern:
        yield {**who, "forbidden": _whole(entry.not_pattern), "why": why}


def _valid(entry: Annotation) -> str:
    """The pattern of this entry's values: what `Annotation.parse` accepts."""
    if entry.type is bool:
        return _any_of(("true", "false", *entry.true_words, *entry.false_words))
    if entry.type is int:
        return f"^-?[0-9]{{1,{_DIGITS}}}$"
    if entry.type is tuple:
        return r"(?s)^$|[^,\s]"
    if entry.allowed:
        return ("(?i)" if entry.any_case else "") + _any_of(entry.allowed)
    return _whole(entry.pattern or ".+")


def _any_of(words: Iterable[str]) -> str:
    return _whole("|".join(re.escape(word) for word in words))


def _family(entry: Annotation) -> str:
    """The pattern of the names of a family's members."""
    return _whole(re.escape(entry.name.removesuffix(entry.suffix or "")) + f"(?:{entry.suffix_pattern})")


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"


def _map(row: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_text(key)}: {_text(value)}" for key, value in row.items()) + "}"


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(_text(each) for each in texts)}]"


def _text(text: str) -> str:
    """A literal of CEL, whose escapes are those of JSON."""
    return json.dumps(str(text), ensure_ascii=False)

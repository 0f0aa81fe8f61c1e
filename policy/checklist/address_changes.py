"""Rule: a Service acknowledges a change that costs its address.

A rule sees only what will be. What is now, it reads from a file that the stack's state was exported to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from cloud_controller import clouds
from cloud_controller.load_balancers.catalogue import Annotation, Catalogue, Mutability
from policy.checklist.load_balancers import OUR_CLASSES, is_balanced
from policy.objects import dig, object_name
from policy.rules import ADVISORY, HIGH, ResourceRule, setting
from policy.subjects import SERVICE, Subject
from policy.unknowns import Problem, problem_if

_SERVICE = "kubernetes:core/v1:Service"

ACKNOWLEDGEMENT = "cloud-controller/acknowledge-address-change"
"""The annotation that the controllers read: the digest of a change that may happen."""


def problems(subject: Subject) -> Iterator[Problem]:
    """LoadBalancer Services that would get another address without saying so."""
    state = subject.config.get("stateBefore")
    if subject.kind != SERVICE or not state:
        return
    conditions = [partial(is_balanced, subject.props), partial(_is_ours, subject.props)]
    for problem in _problems(subject.props, _services(state, Path(state).stat().st_mtime_ns)):
        yield partial(problem_if, conditions, problem)


def _problems(props: Mapping[str, Any], services: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    before = services.get(_key(props))
    if before is None:
        return
    of_class = dig(props, "spec", "loadBalancerClass")
    annotations = dig(props, "metadata", "annotations") or {}
    for cloud in clouds.descriptors():
        catalogue = cloud.catalogue.of_class(of_class)
        for entry in catalogue:
            if catalogue.readdresses(entry):
                yield partial(_problem, catalogue, entry, before, annotations, of_class)


def _problem(
    catalogue: Catalogue,
    entry: Annotation,
    before: Mapping[str, Any],
    annotations: Mapping[str, Any],
    of_class: str | None,
) -> str | None:
    names = (entry.name, *entry.aliases)
    was = {name: before[name] for name in names if name in before}
    will_be = {name: str(annotations[name]) for name in names if name in annotations}
    changed = catalogue.readdressing(was, will_be, of_class)
    if not changed or annotations.get(ACKNOWLEDGEMENT) not in (None, before.get(ACKNOWLEDGEMENT)):
        return None
    _, old, new = changed[0]
    replaced = entry.mutability is Mutability.REPLACE
    what = "another load balancer, and so another address" if replaced else "clients may then reach it only at others"
    return f"annotation {entry.name} changes from {old!r} to {new!r}: {what}"


def _is_ours(props: Mapping[str, Any]) -> bool:
    return dig(props, "spec", "loadBalancerClass") in (None, *OUR_CLASSES)


def _key(props: Mapping[str, Any]) -> str:
    key = object_name(props)
    return key if "/" in key else f"default/{key}"


@lru_cache(1)
def _services(state: str, _changed: int) -> Mapping[str, Mapping[str, Any]]:
    """The annotations of the state's Services, by NAMESPACE/NAME; those that are secret are left out."""
    document = json.loads(Path(state).read_text())
    resources: Iterable[Mapping[str, Any]] = (document.get("deployment") or {}).get("resources") or ()
    return {
        each["id"]: {key: text for key, text in _annotations(each).items() if isinstance(text, str)}
        for each in resources
        if each.get("type") == _SERVICE and each.get("id")
    }


def _annotations(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    return ((resource.get("inputs") or {}).get("metadata") or {}).get("annotations") or {}


ADDRESS_CHANGES_ACKNOWLEDGED = ResourceRule(
    "lb-service-acknowledge-address-change",
    problems,
    why=(
        "A change for which a load balancer must be replaced gives its Service another address, and clients that know "
        "the old one lose it. Such a change must be acknowledged. The rule compares with the stack's state in the file "
        "that the setting stateBefore names, and does nothing without that setting."
    ),
    level=ADVISORY,
    settings={
        "stateBefore": setting(
            "string", "The file that `pulumi stack export --file` wrote before the change; an absolute path.", ""
        ),
    },
    title="Changes of an address are acknowledged",
    severity=HIGH,
    sections="11.3",
    judges=(
        "An annotation whose change replaces the load balancer, and so the address, or may take addresses away in "
        "place, comes with a new value of `cloud-controller/acknowledge-address-change` "
        "([addresses](address-changes.md)). A rule sees only what will "
        "be, so this one compares with a file that `pulumi stack export --file /tmp/before.json` writes. The "
        "setting `stateBefore` gives the file's absolute path; without it, the rule does nothing. It cannot check the "
        "digest itself; the controller and `LoadBalancerService` do. Services of other controllers' classes are left "
        "alone."
    ),
    tags=["network", "availability"],
    remedy=(
        f"Undo the change, or let it happen once by the Service's annotation {ACKNOWLEDGEMENT}, with the digest that "
        "`cloud-controller plan -f` prints; LoadBalancerService has the argument replace_address for it. To exempt a "
        "Service, see its setting `exempt`."
    ),
    url="https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer",
)

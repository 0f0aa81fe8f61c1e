"""What a Service's annotations mean for its load balancer, whichever cloud it is in.

Each cloud's descriptor has its annotations; a setting of the rules adds to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from cloud_controller import clouds as controllers
from policy import clouds
from policy.clouds.interface import Mark, PolicyCloud
from policy.objects import dig
from policy.subjects import SERVICE, Subject
from policy.unknowns import Problem, first_known, problem_if

_CLOUDS = clouds.descriptors()

OUR_CLASSES = sorted({each for cloud in controllers.descriptors() for each in cloud.load_balancer_classes})
"""The values of `spec.loadBalancerClass` that our daemon serves, of all clouds."""

SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
"""Kubernetes' own annotation, which every cloud knows."""

INTERNAL = [mark for cloud in _CLOUDS for mark in cloud.internal]
LIMITED_ELSEWHERE = [mark for cloud in _CLOUDS for mark in cloud.limited_elsewhere]
FURTHER_CLIENTS = [mark for cloud in _CLOUDS for mark in cloud.further_clients]
UNCHECKED = [mark for cloud in _CLOUDS for mark in cloud.unchecked]
BY_POD = [mark for cloud in _CLOUDS for mark in cloud.by_pod]
CHECK_PORTS = [name for cloud in _CLOUDS for name in cloud.check_ports]


def of_balanced(
    subject: Subject, problem: Problem, conditions: Sequence[Callable[[], object]] = ()
) -> Iterator[Problem]:
    """The problem of a Service of type LoadBalancer, where the conditions hold."""
    if subject.kind == SERVICE:
        yield partial(problem_if, [partial(is_balanced, subject.props), *conditions], problem)


def marked(props: Mapping[str, Any], marks: Iterable[Mark]) -> str | None:
    """The first annotation that one of the marks matches, as NAME: VALUE. Raises UnknownValueError."""
    annotations = dig(props, "metadata", "annotations") or {}
    return first_known(
        partial(_marked, props, annotations, name, mark)
        for mark in marks
        for name in annotations
        if fnmatchcase(name, mark.name)
    )


def is_internal(props: Mapping[str, Any], cloud: PolicyCloud | None) -> bool:
    """Whether an annotation makes it internal: one of its cloud's, or of any cloud where that is not known.

    Raises UnknownValueError.
    """
    return marked(props, cloud.internal if cloud is not None else INTERNAL) is not None


def marks_setting(description: str) -> dict[str, Any]:
    """The schema of a setting that adds annotations: their values by their names."""
    return {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": description,
    }


def marks_of(setting: Mapping[str, Any] | None) -> list[Mark]:
    """The marks of such a setting."""
    return [Mark(name, (str(value).strip().lower(),)) for name, value in (setting or {}).items()]


def _marked(props: Mapping[str, Any], annotations: Mapping[str, Any], name: str, mark: Mark) -> str | None:
    value = str(annotations[name])
    if not mark.matches(value) or (mark.beside and marked(props, [mark.beside]) is None):
        return None
    return f"{name}: {value}"


def is_balanced(props: Mapping[str, Any]) -> bool:
    """Whether it is a Service of type LoadBalancer. Raises UnknownValueError."""
    return bool(dig(props, "spec", "type") == "LoadBalancer")

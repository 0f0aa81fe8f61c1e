"""Rule: a LoadBalancer Service has only annotations that do something where it runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cloud_controller.load_balancers.annotation import Annotation
from policy.checklist.asked import Wanted, of_wanted
from policy.checklist.serving import CLOUDS
from policy.rules import ADVISORY, LOW, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Annotations of another kind of load balancer, of another cloud, or that the controller knows and leaves alone."""
    yield from of_wanted(stack, _problems)


def _problems(wanted: Wanted) -> Iterator[Problem]:
    for name in wanted.texts:
        entry = wanted.catalogue.entry(name)
        why = _reason(wanted, entry) if entry else _of_another(wanted, name)
        if why:
            yield partial(_problem, wanted, name, why)


def _reason(wanted: Wanted, entry: Annotation) -> str | None:
    if not entry.ignored:
        return None
    # What is of another kind, no controller reads; the rest is this project's own.
    of_another_kind = not wanted.cloud.catalogue.by_argument[entry.argument].ignored
    return entry.ignored if of_another_kind or wanted.is_ours else None


def _of_another(wanted: Wanted, name: str) -> str | None:
    whose = [cloud.name for cloud in CLOUDS.values() if cloud.catalogue.entry(name) is not None]
    return f"it is {' and '.join(whose)}'s, and the load balancer is on {wanted.cloud.name}" if whose else None


def _problem(wanted: Wanted, name: str, why: str) -> str | None:
    return f"annotation {name} has no effect: {why}" if wanted.texts[name].strip() not in ("", "false") else None


ANNOTATIONS_TAKE_EFFECT = StackRule(
    "lb-service-annotations-take-effect",
    problems,
    why=(
        "An annotation without effect promises what the load balancer does not have. An annotation of another cloud "
        "may even make its author believe that the load balancer is internal, or limited."
    ),
    level=ADVISORY,
    title="Annotations take effect",
    severity=LOW,
    sections="4.3, 4.4, 5.3, 6.2, 7.2",
    judges=(
        "No LoadBalancer Service whose cloud is known (see `lb-service-fit-annotations`) has an annotation for another "
        "kind of load balancer than that of its class, one that only other clouds have, or, where this project's "
        "controller serves it, one that this controller knows and does not support. Annotations without text, or "
        "`false`, pass."
    ),
    unseen=(
        "Settings that have no effect beside others, such as the bandwidth of an internal load balancer: "
        "`cloud-controller plan -f` and an event on the Service report those."
    ),
    tags=["network"],
    remedy=(
        "Remove the annotation, or replace it by that of the load balancer's own cloud and kind "
        "(docs/annotations.md). Exempt a Service that is made in several clouds."
    ),
    url="https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer",
)

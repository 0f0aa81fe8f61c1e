"""Rule: the cloud refuses to delete a Service's load balancer by hand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cloud_controller import clouds as controllers
from policy.checklist.asked import Wanted, of_wanted
from policy.objects import dig
from policy.rules import ADVISORY, LOW, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Load balancers that could be protected, and are not."""
    yield from of_wanted(stack, _problems)


def _problems(wanted: Wanted) -> Iterator[Problem]:
    if wanted.is_ours or _reads_it(wanted):
        yield partial(_problem, wanted)


def _reads_it(wanted: Wanted) -> bool:
    """Whether a controller that is not ours reads the annotation."""
    if not wanted.cloud.balancers.protected_by_ours:
        return True
    of_class = dig(wanted.service.props, "spec", "loadBalancerClass")
    of_others = controllers.descriptor(wanted.cloud.name).of_others.items()
    left = any(name in wanted.texts and wanted.texts[name].strip() in values for name, values in of_others)
    return left or of_class in wanted.cloud.signs.other_classes


def _problem(wanted: Wanted) -> str | None:
    missing = wanted.cloud.balancers.unprotected(wanted.asked)
    return f"the load balancer is not protected from deletion: {missing}" if missing else None


LOAD_BALANCERS_ARE_PROTECTED = StackRule(
    "lb-service-protect-from-deletion",
    problems,
    why=(
        "When someone deletes a load balancer in the console, the address that clients and DNS know is gone. With "
        "deletion protection, the cloud refuses to delete it."
    ),
    level=ADVISORY,
    title="Load balancers are protected from deletion",
    severity=LOW,
    sections="4.3, 4.4, 5.3",
    judges=(
        "The load balancer of a Service has deletion protection, where its cloud and its controller have an "
        "annotation for it."
    ),
    tags=["availability"],
    remedy=(
        "Set the annotation that the message names. Where the controller does not take the protection off itself, "
        "switch it off before the Service is deleted."
    ),
    url=("https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer"),
)

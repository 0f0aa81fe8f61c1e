"""Rule: the controller accepts a LoadBalancer Service's annotations, and what they ask for together.

The parser's and the builders' own checks (`Catalogue.checks`, `Catalogue.refusals`), from which the API server's
admission policy is made too. Each is judged by itself: what is unknown of one annotation hides no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers import restrictions
from cloud_controller.load_balancers.readiness_gates import ReadinessGates
from cloud_controller.load_balancers.refusals import Refusal, refuse
from policy.checklist.asked import Wanted, texts_of
from policy.checklist.load_balancers import is_balanced
from policy.checklist.serving import CLOUDS, Serving
from policy.rules import ADVISORY, HIGH, Stack, StackRule
from policy.subjects import SERVICE, Subject
from policy.unknowns import Problem, collect, first_known, only_known, problem_if

_VALUES = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s'\"(),;]{12,}")


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Each annotation, and each combination, that the Service's controller refuses."""
    serving = Serving(stack)
    for service in stack.of(SERVICE):
        for problem in collect(_problems(service, serving)):
            yield service, partial(problem_if, [partial(is_balanced, service.props)], problem)


def _problems(service: Subject, serving: Serving) -> Iterator[Problem]:
    wanted = Wanted.of(service, serving)
    if wanted is not None:
        for check in wanted.checks:
            yield partial(_said, check.run, wanted.texts)
        if wanted.is_ours:
            yield from _together(wanted)
    elif serving.cloud(service) is None:
        texts = texts_of(service)
        for cloud in CLOUDS.values():
            for check in cloud.catalogue.checks(texts):
                # A program may run in several clouds: each one's names by themselves.
                if check.name.startswith(cloud.catalogue.prefixes):
                    yield partial(_said, check.run, texts)


def _together(wanted: Wanted) -> Iterator[Problem]:
    """What our controller refuses besides. As it does, look at several settings only if each is valid."""
    texts = wanted.texts
    if only_known(partial(_said, check.run, texts) for check in wanted.checks):
        return
    for name in texts:
        if wanted.catalogue.entry(name) is None:
            yield partial(_said, partial(_restrict, wanted, name), texts)
    yield partial(_said, partial(ReadinessGates().asked, {"metadata": {"annotations": texts}}), texts)
    if not wanted.service.is_patch:
        rules = wanted.catalogue.refusals
        yield partial(first_known, [partial(_said, partial(_refuse, wanted, rule), texts) for rule in rules])


def _restrict(wanted: Wanted, name: str) -> None:
    internal = wanted.catalogue.is_internal(wanted.asked.settings.given)
    restrictions.refuse_unknown({name: wanted.texts[name]}, internal=internal)


def _refuse(wanted: Wanted, rule: Refusal) -> None:
    refuse(wanted.asked.settings, wanted.asked.spec, [rule])


def _said(check: Callable[[], object], texts: Mapping[str, str]) -> str | None:
    """What a check refuses. Raises UnknownValueError.

    Without the annotations' values, which may be secret: neither what is in quotes nor long words.
    """
    try:
        check()
    except InvalidConfiguration as error:
        values = "\n".join(f"{text}\n{text!r}" for text in only_known(partial(texts.get, name) for name in texts))
        allowed = f" (allowed: {error.allowed})" if error.allowed else ""
        reason = _VALUES.sub(lambda found: "'…'" if found[0].strip("'\"…") in values else found[0], error.why + allowed)
        return f"{error.field}: {reason}"
    return None


ANNOTATIONS_ARE_ACCEPTED = StackRule(
    "lb-service-fit-annotations",
    problems,
    why=(
        "The controller refuses a Service with an annotation that is misspelt, out of range or in conflict with "
        "another, or with its ports: the Service then has no load balancer, or keeps an outdated one. A vendor's "
        "controller ignores a name that it does not know, so the load balancer lacks what the annotation asks for."
    ),
    level=ADVISORY,
    title="Annotations are valid",
    severity=HIGH,
    lines=["11.2.6"],
    sections="4.3, 4.4, 5.3, 6.2, 7.2",
    judges=(
        "No Service has annotations that its cloud's parser refuses: unknown names (reported with the nearest one), "
        "invalid values, two names of one annotation that contradict each other. Where this project's controller "
        "serves the Service, the rule also reports what its annotations and ports cannot have together, and unknown "
        "annotations that restrict access. The Service's cloud is that of the cluster's CCM, of the class, of the "
        "stack's managed clusters, of its resources, or of the Service's annotations; where several are left, each "
        "annotation is judged by the cloud that its name belongs to. Of clouds without controllers in this project, "
        "only the names are known. What the cluster refuses at `kubectl apply` by its admission policy is refused "
        "here, in the same words without the values."
    ),
    unseen=(
        "Services of Helm charts and of other controllers' classes; what only the cloud or the administrator's "
        "options refuse, such as a certificate that does not exist; a vendor's own rules about combinations."
    ),
    tags=["network"],
    remedy=(
        "Correct the annotation: docs/annotations.md lists those of every cloud, with their values. `cloud-controller "
        "plan -f` says the same of a manifest."
    ),
    url="https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer",
)

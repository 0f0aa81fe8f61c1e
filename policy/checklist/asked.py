"""What a LoadBalancer Service asks of its cloud: its annotations as typed settings, and its spec.

Values are read when a rule asks for them, so that an unknown one matters only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers.catalogue import Catalogue, Check
from cloud_controller.load_balancers.terms import Asked
from policy.checklist.load_balancers import is_balanced
from policy.checklist.serving import Serving
from policy.clouds.interface import PolicyCloud
from policy.objects import Lazy, dig, plain
from policy.rules import Stack
from policy.subjects import SERVICE, Subject
from policy.unknowns import Problem, collect, only_known, problem_if


@dataclass(frozen=True, slots=True)
class Wanted:
    """A LoadBalancer Service, as the controllers of its cloud read it."""

    service: Subject
    cloud: PolicyCloud
    is_ours: bool
    """Whether this project's controller makes the load balancer."""
    catalogue: Catalogue
    """That of the Service's kind of load balancer."""
    texts: Mapping[str, str]
    """Its annotations. Reading an unknown one raises UnknownValueError, here and in `asked`."""
    checks: tuple[Check, ...]
    asked: Asked
    """Without annotations that are invalid: rule `lb-service-fit-annotations` reports those."""

    @classmethod
    def of(cls, service: Subject, serving: Serving) -> Wanted | None:
        """None where the cloud is not known, or the load balancer is another controller's. Raises UnknownValueError."""
        cloud = serving.cloud(service)
        if cloud is None or not serving.is_of(service, cloud):
            return None
        catalogue = cloud.catalogue.of_class(dig(service.props, "spec", "loadBalancerClass"))
        texts = texts_of(service)
        checks = tuple(catalogue.checks(texts))
        given = Lazy({check.entry.argument: check.run for check in checks if check.entry and _is_given(check)})
        asked = Asked(catalogue.settings(given), _spec(service.props))
        return cls(service, cloud, serving.is_ours(service, cloud), catalogue, texts, checks, asked)

    def ports(self) -> Iterator[Asked]:
        """The same for each port. Raises UnknownValueError if one of them is unknown."""
        for port in self.asked.spec["ports"]:
            yield Asked(self.asked.settings, self.asked.spec, port)


def texts_of(service: Subject) -> Mapping[str, str]:
    """The Service's annotations as texts. Raises UnknownValueError if their names are unknown."""
    given = dig(service.props, "metadata", "annotations") or {}
    return Lazy({name: partial(_text, given, name) for name in given})


def of_wanted(stack: Stack, problems: Callable[[Wanted], Iterator[Problem]]) -> Iterator[tuple[Subject, Problem]]:
    """The problems of each LoadBalancer Service whose cloud is known. What is unknown of one hides no other."""
    serving = Serving(stack)
    for service in stack.of(SERVICE):
        for problem in collect(_of(service, serving, problems)):
            yield service, partial(problem_if, [partial(is_balanced, service.props)], problem)


def every_wanted(stack: Stack) -> Iterator[Callable[[], Wanted | None]]:
    """Each LoadBalancer Service whose cloud is known; an unknown one raises UnknownValueError when it is called."""
    serving = Serving(stack)
    for service in stack.of(SERVICE):
        yield partial(_balanced, service, serving)


def _of(service: Subject, serving: Serving, problems: Callable[[Wanted], Iterator[Problem]]) -> Iterator[Problem]:
    wanted = Wanted.of(service, serving)
    if wanted is not None:
        yield from problems(wanted)


def _balanced(service: Subject, serving: Serving) -> Wanted | None:
    return Wanted.of(service, serving) if is_balanced(service.props) else None


def _text(given: Mapping[str, Any], name: str) -> str:
    return str(given[name])


def _is_given(check: Check) -> bool:
    """Whether the annotation has an effect and a value, known or not."""
    assert check.entry is not None
    return not check.entry.ignored and not only_known([partial(_has_no_value, check)])


def _has_no_value(check: Check) -> bool:
    try:
        return check.run() is None
    except InvalidConfiguration:
        return True


def _spec(props: Mapping[str, Any]) -> Lazy:
    """The spec as the API server completes it."""
    spec = dig(props, "spec") or {}
    return Lazy({**{field: partial(_field, spec, field) for field in spec}, "ports": partial(_ports, spec)})


def _field(spec: Mapping[str, Any], field: str) -> Any:
    return plain(spec[field])


def _ports(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    ports = [{"protocol": "TCP", "port": 0, **port} for port in plain(dig(spec, "ports") or [])]
    if dig(spec, "allocateLoadBalancerNodePorts") is not False:
        for port in ports:
            # The server gives ports of the same number the same one.
            port.setdefault("nodePort", 30_000 + port["port"] % 2_768)
    return ports

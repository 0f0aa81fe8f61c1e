"""Which cloud makes the load balancer of a Service, and which controllers of the stack would.

Evidence, in this order: the cloud controller managers of the Service's cluster, its class, the stack's managed
clusters, its annotations, the packages of the stack's resources. What is unknown is no evidence. Where one piece
leaves several clouds, the next one narrows them: the first of several is never taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from cloud_controller import clouds as controllers
from policy import clouds
from policy.clouds.interface import PolicyCloud
from policy.command_lines import command_line, flag_values
from policy.objects import dig, object_name
from policy.rules import Stack
from policy.subjects import Subject
from policy.unknowns import first_known, if_known, only_known
from policy.workloads import WORKLOADS, ccm_name, containers

CLOUDS: Mapping[str, PolicyCloud] = {cloud.name: cloud for cloud in clouds.descriptors()}
"""By name."""
_OURS = {cloud.name: frozenset(cloud.load_balancer_classes) for cloud in controllers.descriptors()}
_BY_CALLED = {cloud.signs.called: cloud.name for cloud in CLOUDS.values()}
_SERVICE_CONTROLLERS = ("service", "service-lb-controller", "cloud-service-controller", "*")
"""How `--controllers` names the controller of Services: ours, upstream's, and a vendor's older ones."""


@dataclass(frozen=True, slots=True)
class Server:
    """A controller that makes load balancers of Services. `cluster`: the URN of its provider; None: not known."""

    subject: Subject
    """Its workload, or the managed cluster that it is part of."""
    name: str
    cloud: str
    is_ours: bool
    classes: frozenset[str | None]
    """The values of `spec.loadBalancerClass` that it serves; None: Services without a class."""
    cluster: str | None = None


class Serving:
    """The controllers of one stack."""

    def __init__(self, stack: Stack) -> None:
        managers = [partial(_manager, each, stack.config) for each in stack.of(*WORKLOADS)]
        self.servers = [*only_known(managers), *_managed(stack.subjects)]
        self._packages = {name for each in stack.subjects if (name := _by_type(each.kind))}

    def cloud(self, service: Subject) -> PolicyCloud | None:
        """The cloud of the Service's load balancer; None if nothing in the stack tells, or if it tells of several.

        Raises UnknownValueError if that depends on its class.
        """
        of_class = dig(service.props, "spec", "loadBalancerClass")
        here = service.cluster
        possible: set[str] = set()
        for found in (
            {server.cloud for server in self.servers if server.cluster == here},
            {name for name in CLOUDS if of_class in _classes(name)},
            {server.cloud for server in self.servers if server.cluster is None},
            _by_annotations(service),
            self._packages,
        ):
            possible = (possible & found if possible else found) or possible
            if len(possible) == 1:
                [name] = possible
                return CLOUDS[name]
        return None

    def of(self, service: Subject) -> list[Server]:
        """The controllers that would serve the Service. Raises UnknownValueError as `cloud`."""
        of_class = dig(service.props, "spec", "loadBalancerClass")
        here = service.cluster
        return [each for each in self.servers if each.cluster in (here, None) and of_class in each.classes]

    def is_ours(self, service: Subject, cloud: PolicyCloud) -> bool:
        """Whether this project's controller makes the load balancer. Raises UnknownValueError as `cloud`."""
        if cloud.name not in _OURS or _is_left_to_others(service, cloud):
            return False
        of_class = dig(service.props, "spec", "loadBalancerClass")
        if of_class in _OURS[cloud.name]:
            return True
        serving = self.of(service)
        if serving:
            return all(each.is_ours for each in serving)
        return of_class is None and None not in cloud.signs.ccm_classes

    def is_of(self, service: Subject, cloud: PolicyCloud) -> bool:
        """Whether a controller of this cloud, known here, makes it: not one of a class of other people's."""
        of_class = dig(service.props, "spec", "loadBalancerClass")
        return of_class is None or of_class in _classes(cloud.name) or bool(self.of(service))


def _classes(cloud: str) -> frozenset[str | None]:
    """The classes that only controllers of this cloud serve."""
    signs = CLOUDS[cloud].signs
    return frozenset(each for each in (*_OURS.get(cloud, ()), *signs.ccm_classes, *signs.other_classes) if each)


def _is_left_to_others(service: Subject, cloud: PolicyCloud) -> bool:
    annotations = dig(service.props, "metadata", "annotations") or {}
    of_others = controllers.descriptor(cloud.name).of_others.items()
    return any(name in annotations and str(annotations[name]).strip() in values for name, values in of_others)


def _manager(workload: Subject, config: Mapping[str, Any]) -> Server | None:
    """The CCM that the workload runs, if it serves Services. Raises UnknownValueError."""
    return first_known(partial(_in_container, workload, container, config) for container in containers(workload))


def _in_container(
    workload: Subject, container: Callable[[], Mapping[str, Any]], config: Mapping[str, Any]
) -> Server | None:
    if ccm_name(container, config) is None:
        return None
    flags = flag_values(word for words in only_known(command_line(container())) for word in words)
    ours = flags.get("--cloud")
    cloud = ours or _BY_CALLED.get(flags.get("--cloud-provider", ""), "")
    enabled = (flags.get("--controllers") or "*").split(",")
    if cloud not in CLOUDS or not {*enabled} & {*_SERVICE_CONTROLLERS}:
        return None
    if any(f"-{name}" in enabled for name in _SERVICE_CONTROLLERS):
        return None
    classes: Iterable[str | None] = CLOUDS[cloud].signs.ccm_classes
    if ours:
        of_none = [] if "--require-load-balancer-class" in flags else [None]
        classes = (*_OURS.get(cloud, ()), *of_none)
    name = f"the cloud controller manager {object_name(workload.props)}"
    return Server(workload, name, cloud, bool(ours), frozenset(classes), workload.cluster)


def _managed(subjects: Iterable[Subject]) -> Iterator[Server]:
    """The vendors' own controllers in the stack's managed clusters."""
    for subject in subjects:
        for name, cloud in CLOUDS.items():
            if subject.kind in cloud.signs.managed:
                what = f"the controller of the managed cluster {subject.name}"
                yield Server(subject, what, name, False, frozenset(cloud.signs.ccm_classes))


def _by_annotations(service: Subject) -> set[str]:
    """The clouds that own names of the Service's annotations."""
    names = if_known(lambda: [*(dig(service.props, "metadata", "annotations") or {})]) or []
    prefixes = {name: cloud.catalogue.prefixes for name, cloud in CLOUDS.items()}
    return {cloud for cloud, owned in prefixes.items() if any(name.startswith(owned) for name in names)}


def _by_type(kind: str) -> str | None:
    return next((name for name, cloud in CLOUDS.items() if kind.startswith(cloud.signs.types)), None)

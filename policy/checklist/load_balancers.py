"""What a Service's annotations say of its load balancer, whichever cloud it is in.

The names of clouds that have a catalogue come from it, those of others stand here; a setting of the rules adds to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from pulumi_policy import ReportViolation, ResourceValidationArgs

from cloud_controller.clouds.aws.annotations import CATALOGUE as AWS
from cloud_controller.clouds.aws.annotations import CLASSES as AWS_CLASSES
from cloud_controller.clouds.mycloud.annotations import CATALOGUE as MYCLOUD
from cloud_controller.clouds.mycloud.annotations import CLASSES as MYCLOUD_CLASSES
from cloud_controller.load_balancers.catalogue import Catalogue
from policy.checklist.objects import SERVICE, dig, is_judged
from policy.checklist.unknowns import Problem, first_known, judge

_ALIBABA = (
    "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-",
    "service.beta.kubernetes.io/alicloud-loadbalancer-",
)
_AZURE = "service.beta.kubernetes.io/azure-"


@dataclass(frozen=True, slots=True)
class Mark:
    """An annotation (`*` in its name stands for anything) that says something with one of these values.

    Values are compared without case; without any, it says it with each but none and `false`.
    """

    name: str
    values: tuple[str, ...] = ()
    beside: Mark | None = None
    """Another annotation without which this one says nothing."""

    def is_said(self, value: str) -> bool:
        """Whether the annotation says it with this value."""
        text = value.strip().lower()
        return text in self.values if self.values else text not in ("", "false")


def _of(catalogue: Catalogue, argument: str) -> str:
    return catalogue.by_argument[argument].name


OUR_CLASSES = (*AWS_CLASSES, *MYCLOUD_CLASSES)
"""The values of `spec.loadBalancerClass` that our daemon serves, in one cloud or the other."""

SOURCE_RANGES = _of(MYCLOUD, "load_balancer_source_ranges")
"""Every cloud's: it is Kubernetes' own."""

PREFIX_LISTS = Mark(_of(AWS, "security_group_prefix_lists"))
"""Clients besides the source ranges; where there are none of those, instead of everybody."""

INTERNAL = (
    Mark(_of(MYCLOUD, "scheme"), ("internal",)),
    *(Mark(f"{prefix}address-type", ("intranet",)) for prefix in _ALIBABA),
    Mark(_of(AWS, "internal")),
    Mark(_of(AWS, "scheme"), ("internal",)),
    Mark(f"{_AZURE}load-balancer-internal", ("true",)),
    Mark("networking.gke.io/load-balancer-type", ("internal",)),
    Mark("cloud.google.com/load-balancer-type", ("internal",)),
    Mark("service.beta.kubernetes.io/openstack-internal-load-balancer", ("true",)),
    Mark("service.beta.kubernetes.io/tencentcloud-loadbalancer-type", ("private",)),
    Mark("service.kubernetes.io/qcloud-loadbalancer-internal-subnetid"),
)
"""The load balancer's address is for the network alone. In all of these clouds the default is a public one."""

LIMITED_ELSEWHERE = (
    # Its own ranges decide, and the cloud refuses any that the Service brings.
    Mark(_of(MYCLOUD, "id")),
    # An access list is off until it is switched on.
    *(Mark(f"{prefix}acl-type", ("white",), Mark(f"{prefix}acl-status", ("on",))) for prefix in _ALIBABA),
    *(Mark(f"{prefix}security-group-ids") for prefix in _ALIBABA),
    Mark(_of(AWS, "security_groups")),
    Mark(f"{_AZURE}allowed-service-tags"),
    Mark(f"{_AZURE}allowed-ip-ranges"),
)
"""Who may connect is said by something other than the Service's source ranges."""

UNCHECKED = (
    Mark(_of(MYCLOUD, "health_check_protocol"), ("none",)),
    *(Mark(f"{prefix}health-check-{switch}", ("off",)) for prefix in _ALIBABA for switch in ("flag", "switch")),
    Mark("service.beta.kubernetes.io/port_*_no_probe_rule", ("true",)),
    Mark("loadbalancer.openstack.org/enable-health-monitor", ("false",)),
    Mark("kubernetes.io/elb.health-check-flag", ("off",)),
)
"""Backends get traffic whether they answer or not."""


def check_service(
    args: ResourceValidationArgs,
    report: ReportViolation,
    problem: Problem,
    conditions: Sequence[Callable[[], object]] = (),
) -> None:
    """Report a problem of a Service of type LoadBalancer, if it is not exempt and the conditions hold."""
    if args.resource_type != SERVICE:
        return
    ours = [partial(_is_balanced, args.props), partial(is_judged, args.get_config(), args.props, args.name)]
    judge([*ours, *conditions], [problem], report)


def said(props: Mapping[str, Any], marks: Iterable[Mark]) -> str | None:
    """The first annotation that says what the marks stand for, as NAME: VALUE. Raises UnknownValueError."""
    annotations = dig(props, "metadata", "annotations") or {}
    return first_known(
        partial(_said, props, annotations, name, mark)
        for mark in marks
        for name in annotations
        if fnmatchcase(name, mark.name)
    )


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


def _said(props: Mapping[str, Any], annotations: Mapping[str, Any], name: str, mark: Mark) -> str | None:
    value = str(annotations[name])
    if not mark.is_said(value) or (mark.beside and said(props, [mark.beside]) is None):
        return None
    return f"{name}: {value}"


def _is_balanced(props: Mapping[str, Any]) -> bool:
    return bool(dig(props, "spec", "type") == "LoadBalancer")

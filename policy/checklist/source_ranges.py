"""Rule: a load balancer with a public address limits who may connect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    PolicyComplianceFramework,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
)
from pulumi_policy.proxy import UnknownValueError

from policy.checklist.load_balancers import (
    FURTHER_CLIENTS,
    INTERNAL,
    LIMITED_ELSEWHERE,
    SOURCE_RANGES,
    check_service,
    marked,
    marks_of,
    marks_setting,
)
from policy.clouds.interface import Mark
from policy.objects import dig, each, schema


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report a public LoadBalancer Service that anyone may connect to."""
    conditions = [partial(_is_public, args), partial(_is_not_limited, args)]
    check_service(args, report, partial(_problem, args.props), conditions)


def _is_public(args: ResourceValidationArgs) -> bool:
    config = args.get_config()
    if dig(args.props, "spec", "loadBalancerClass") in (config.get("internalClasses") or ()):
        return False
    return marked(args.props, [*INTERNAL, *marks_of(config.get("internalAnnotations"))]) is None


def _is_not_limited(args: ResourceValidationArgs) -> bool:
    more = args.get_config().get("limitingAnnotations") or ()
    return marked(args.props, [*LIMITED_ELSEWHERE, *map(Mark, more)]) is None


def _problem(props: Mapping[str, Any]) -> str | None:
    ranges = [*each(dig(props, "spec", "loadBalancerSourceRanges"))]
    field = "spec.loadBalancerSourceRanges"
    if not ranges:
        # As upstream: the annotation counts where the field is empty.
        text = dig(props, "metadata", "annotations", SOURCE_RANGES) or ""
        ranges = [partial(str, part) for part in str(text).split(",") if part.strip()]
        field = f"annotation {SOURCE_RANGES}"
    if not ranges:
        if marked(props, FURTHER_CLIENTS) is not None:
            return None
        return "the load balancer is public and has no source ranges: anyone may connect"
    return f"the load balancer is public and {field} allows every address" if _is_everyone(ranges) else None


def _is_everyone(ranges: list[Callable[[], Any]]) -> bool:
    """Whether the ranges, together, are all of IPv4 or IPv6: 0.0.0.0/1 and 128.0.0.0/1 are no limit either."""
    networks: list[IPv4Network | IPv6Network] = []
    unknown: UnknownValueError | None = None
    for source in ranges:
        try:
            networks.extend(_networks(str(source())))
        except UnknownValueError as error:
            unknown = unknown or error
    four = collapse_addresses(n for n in networks if isinstance(n, IPv4Network))
    six = collapse_addresses(n for n in networks if isinstance(n, IPv6Network))
    everyone = any(n.prefixlen == 0 for n in four) or any(n.prefixlen == 0 for n in six)
    if unknown is not None and not everyone:
        raise unknown
    return everyone


def _networks(text: str) -> Iterator[IPv4Network | IPv6Network]:
    """The range; none where the text is no CIDR: the controller refuses such a Service, so it admits nobody."""
    try:
        yield ip_network(text.strip(), strict=False)
    except ValueError:
        return


PUBLIC_BALANCERS_LIMIT_SOURCES = ResourceValidationPolicy(
    name="lb-service-limit-sources",
    description=(
        "A public load balancer must limit its clients: otherwise a Service meant for partners or an office is open to "
        "the whole internet unnoticed. Exempt by name the Services that are meant for everyone."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=schema(
        internalAnnotations=marks_setting("Further annotations that make a load balancer internal: values by name."),
        internalClasses={
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "spec.loadBalancerClass values whose load balancers are internal.",
        },
        limitingAnnotations={
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "Further annotations that, with any value, limit who may connect, such as an access list.",
        },
    ),
    display_name="Public load balancers limit their sources",
    severity=Severity.MEDIUM,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="11.3",
        specification="Network security",
    ),
    tags=["network"],
    remediation_steps=(
        "Set spec.loadBalancerSourceRanges to the clients' ranges, or make the load balancer internal. To "
        "exempt a Service that is meant for everyone, set "
        '{"lb-service-limit-sources": {"exempt": ["NAMESPACE/NAME"]}} in the policy config.'
    ),
    url="https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer",
)

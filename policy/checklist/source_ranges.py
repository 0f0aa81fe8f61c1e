"""Rule: a load balancer with a public address limits who may connect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Any

from pulumi_policy.proxy import UnknownValueError

from policy.checklist.load_balancers import (
    FURTHER_CLIENTS,
    INTERNAL,
    LIMITED_ELSEWHERE,
    SOURCE_RANGES,
    marked,
    marks_of,
    marks_setting,
    of_balanced,
)
from policy.clouds.interface import Mark
from policy.objects import dig, each
from policy.rules import ADVISORY, MEDIUM, ResourceRule, setting
from policy.subjects import Subject
from policy.unknowns import Problem


def problems(subject: Subject) -> Iterator[Problem]:
    """Public LoadBalancer Services that anyone may connect to."""
    conditions = [partial(_is_public, subject), partial(_is_not_limited, subject)]
    yield from of_balanced(subject, partial(_problem, subject.props), conditions)


def _is_public(subject: Subject) -> bool:
    if dig(subject.props, "spec", "loadBalancerClass") in (subject.config.get("internalClasses") or ()):
        return False
    return marked(subject.props, [*INTERNAL, *marks_of(subject.config.get("internalAnnotations"))]) is None


def _is_not_limited(subject: Subject) -> bool:
    more = subject.config.get("limitingAnnotations") or ()
    return marked(subject.props, [*LIMITED_ELSEWHERE, *map(Mark, more)]) is None


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


PUBLIC_BALANCERS_LIMIT_SOURCES = ResourceRule(
    "lb-service-limit-sources",
    problems,
    why=(
        "A public load balancer must limit its clients: otherwise a Service meant for partners or an office is open to "
        "the whole internet unnoticed. Exempt by name the Services that are meant for everyone."
    ),
    level=ADVISORY,
    settings={
        "internalAnnotations": marks_setting("Further annotations that make a load balancer internal: values by name."),
        "internalClasses": setting("texts", "spec.loadBalancerClass values whose load balancers are internal.", []),
        "limitingAnnotations": setting(
            "texts", "Further annotations that, with any value, limit who may connect, such as an access list.", []
        ),
    },
    title="Public load balancers limit their sources",
    severity=MEDIUM,
    sections="11.3",
    judges=(
        "A load balancer with a public address has `spec.loadBalancerSourceRanges` (or, if that is empty, the "
        "annotation `service.beta.kubernetes.io/load-balancer-source-ranges`), and the ranges together do not "
        "cover all of IPv4 or IPv6: `0.0.0.0/1` with `128.0.0.0/1` is no limit. An address is public unless an "
        "annotation makes it internal; the rule knows the annotations of mycloud, Alibaba Cloud and AWS (from "
        "their catalogues), Azure, Google, OpenStack and Tencent. `internalAnnotations` and `internalClasses` add "
        "to them (`service.k8s.aws/nlb` is internal with its own controller's default). The rule skips Services "
        "that limit their clients in another way: mycloud's `dlb-id`, white lists (that are on), security groups, "
        "prefix lists (without ranges), service tags, and the annotations in `limitingAnnotations`. Exempt a "
        "Service that is meant for everyone by its name."
    ),
    tags=["network"],
    remedy=(
        "Set spec.loadBalancerSourceRanges to the clients' ranges, or make the load balancer internal. Exempt a "
        "Service that is meant for everyone by the setting `exempt`."
    ),
    url="https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer",
)

"""Rule: a load balancer with a public address limits who may connect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Any

from pulumi_policy.proxy import UnknownValueError

from policy.checklist.load_balancers import (
    FURTHER_CLIENTS,
    LIMITED_ELSEWHERE,
    SOURCE_RANGES,
    is_internal,
    marked,
    marks_of,
    marks_setting,
    of_balanced,
)
from policy.checklist.serving import Serving
from policy.clouds.interface import Mark
from policy.objects import dig, each
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule, setting
from policy.subjects import SERVICE, Subject
from policy.unknowns import Problem

_WIDEST = {4: 8, 6: 16}
"""The shortest prefix that limits clients, by IP version: no organisation has more than a /8, or a /16 of IPv6."""
_WIDE_BUT_PRIVATE = (ip_network("fc00::/7"),)
"""Unique local addresses, which the internet does not route."""


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Public LoadBalancer Services that anyone, or a large part of the internet, may connect to."""
    serving = Serving(stack)
    for service in stack.of(SERVICE):
        conditions = [partial(_is_public, service, serving), partial(_is_not_limited, service, serving)]
        for problem in of_balanced(service, partial(_problem, service, serving), conditions):
            yield service, problem


def _is_public(service: Subject, serving: Serving) -> bool:
    if dig(service.props, "spec", "loadBalancerClass") in (service.config.get("internalClasses") or ()):
        return False
    if marked(service.props, marks_of(service.config.get("internalAnnotations"))) is not None:
        return False
    # Another cloud's annotation has no effect.
    return not is_internal(service.props, serving.cloud(service))


def _is_not_limited(service: Subject, serving: Serving) -> bool:
    cloud = serving.cloud(service)
    marks = LIMITED_ELSEWHERE if cloud is None else cloud.limited_elsewhere
    more = service.config.get("limitingAnnotations") or ()
    return marked(service.props, [*marks, *map(Mark, more)]) is None


def _problem(service: Subject, serving: Serving) -> str | None:
    props, config = service.props, service.config
    ranges = [*each(dig(props, "spec", "loadBalancerSourceRanges"))]
    field = "spec.loadBalancerSourceRanges"
    if not ranges:
        # As upstream: the annotation counts where the field is empty.
        text = dig(props, "metadata", "annotations", SOURCE_RANGES) or ""
        ranges = [partial(str, part) for part in str(text).split(",") if part.strip()]
        field = f"annotation {SOURCE_RANGES}"
    if not ranges:
        cloud = serving.cloud(service)
        if marked(props, FURTHER_CLIENTS if cloud is None else cloud.further_clients) is not None:
            return None
        return "the load balancer is public and has no source ranges: anyone may connect"
    settings = {4: "widestPrefix", 6: "widestPrefixIPv6"}
    found = _too_wide(ranges, {version: int(config.get(settings[version]) or _WIDEST[version]) for version in (4, 6)})
    return f"the load balancer is public and {field} allows {found}" if found else None


def _too_wide(ranges: list[Callable[[], Any]], widest: Mapping[int, int]) -> str | None:
    """What the ranges allow too much, together: 0.0.0.0/1 and 128.0.0.0/1 are every address."""
    networks: list[IPv4Network | IPv6Network] = []
    unknown: UnknownValueError | None = None
    for source in ranges:
        try:
            networks.extend(_networks(str(source())))
        except UnknownValueError as error:
            unknown = unknown or error
    merged: list[IPv4Network | IPv6Network] = [
        *collapse_addresses(n for n in networks if isinstance(n, IPv4Network)),
        *collapse_addresses(n for n in networks if isinstance(n, IPv6Network)),
    ]
    if any(each.prefixlen == 0 for each in merged):
        return "every address"
    for found in merged:
        if found.prefixlen < widest[found.version] and found not in _WIDE_BUT_PRIVATE:
            return f"a part of IPv{found.version} that is wider than /{widest[found.version]}"
    if unknown is not None:
        raise unknown
    return None


def _networks(text: str) -> Iterator[IPv4Network | IPv6Network]:
    """The range; none where the text is no CIDR: the controller refuses such a Service, so it admits nobody."""
    try:
        yield ip_network(text.strip(), strict=False)
    except ValueError:
        return


PUBLIC_BALANCERS_LIMIT_SOURCES = StackRule(
    "lb-service-limit-sources",
    problems,
    why=(
        "A public load balancer must limit its clients: otherwise a Service meant for partners or an office is open to "
        "the whole internet unnoticed. Exempt the Services that are meant for everyone."
    ),
    level=ADVISORY,
    reports_good="two neighbouring /8 of one company, and private ranges of IPv6 such as `fd00::/8`",
    settings={
        "internalAnnotations": marks_setting("Further annotations that make a load balancer internal: values by name."),
        "internalClasses": setting("texts", "spec.loadBalancerClass values whose load balancers are internal.", []),
        "widestPrefix": setting(
            "integer",
            "The shortest prefix of a public IPv4 range that limits clients.",
            _WIDEST[4],
            minimum=1,
            maximum=32,
        ),
        "widestPrefixIPv6": setting("integer", "The same for IPv6.", _WIDEST[6], minimum=1, maximum=128),
        "limitingAnnotations": setting(
            "texts", "Further annotations that, with any value, limit who may connect, such as an access list.", []
        ),
    },
    title="Public load balancers limit their sources",
    severity=MEDIUM,
    sections="11.3",
    judges=(
        "A load balancer with a public address has `spec.loadBalancerSourceRanges` (or, if that is empty, the "
        "annotation `service.beta.kubernetes.io/load-balancer-source-ranges`), and the ranges together do not cover "
        "all of IPv4 or IPv6, nor more of it than a /8 or /16 (`widestPrefix`, `widestPrefixIPv6`): `0.0.0.0/1` is no "
        "limit. An address is public unless an annotation of its own cloud makes it internal (see "
        "`lb-service-fit-annotations` for how the cloud is found; if it is not found, the annotations of every cloud "
        "count). `internalAnnotations` and `internalClasses` add to them. The rule skips Services that limit their "
        "clients in another way: a reused load balancer that keeps its own ranges, white lists (that are on), security "
        "groups, prefix lists (without ranges), service tags, and the annotations in `limitingAnnotations`."
    ),
    tags=["network"],
    remedy=(
        "Set spec.loadBalancerSourceRanges to the clients' ranges, or make the load balancer internal. Exempt a "
        "Service that is meant for everyone by the setting `exempt`."
    ),
    url="https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer",
)

"""Reads what the builds of Services need to know of the cloud, so that plans need no calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cloud_controller.controllers.service.rules import Rules, may_keep, wants_load_balancer
from cloud_controller.load_balancers.facts import Facts
from cloud_controller.load_balancers.model import Object
from cloud_controller.load_balancers.operations import LoadBalancers


def facts_for(
    services: Iterable[Object], slices: Mapping[str, Sequence[Object]], load_balancers: LoadBalancers, rules: Rules
) -> Facts:
    """The facts for plans of these Services; nothing is read for those that want no load balancer."""
    builder = load_balancers.builder
    wanting = [each for each in services if wants_load_balancer(each, rules, builder) or may_keep(each, rules)]
    return load_balancers.facts(wanting, slices, rules.nameable.kinds_by_tag) if wanting else None

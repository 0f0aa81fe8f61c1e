"""Every rule about several settings refuses a Service of the table, and not the one that differs little from it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cloud_controller import clouds
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancers.refusals import refuse
from tests.cloud_controller.combinations import BOUNDS, ONLY_WITH_IPV6, PAIRS, Asked


def as_stored(asked: Asked) -> Any:
    """The spec as an API server completes it."""
    spec = copy.deepcopy(asked.service()["spec"])
    if spec.get("allocateLoadBalancerNodePorts", True):
        for number, port in enumerate(spec["ports"]):
            port.setdefault("nodePort", 30080 + number)
    return spec


def refused(asked: Asked) -> str | None:
    settings = asked.kind.parse(asked.annotations)
    try:
        refuse(settings, as_stored(asked), asked.kind.refusals)
    except InvalidConfiguration as error:
        return str(error)
    return None


@pytest.mark.parametrize(("wrong", "right"), [*PAIRS, *ONLY_WITH_IPV6, *BOUNDS])
def test_a_combination_is_refused_and_not_its_neighbour(wrong: Asked, right: Asked) -> None:
    assert refused(wrong) is not None
    assert refused(right) is None


def test_the_table_has_a_service_for_every_rule() -> None:
    catalogues = [each.catalogue for each in clouds.descriptors()]
    kinds = [kind for catalogue in catalogues for kind in catalogue.kinds or (catalogue,)]
    unused = [rule for kind in kinds for rule in kind.refusals]
    for wrong, _ in (*PAIRS, *ONLY_WITH_IPV6, *BOUNDS):
        for rule in wrong.kind.refusals:
            try:
                refuse(wrong.kind.parse(wrong.annotations), as_stored(wrong), [rule])
            except InvalidConfiguration:
                unused = [each for each in unused if each is not rule]

    assert not unused

"""The API server refuses no near miss that the parser accepts."""

from __future__ import annotations

import itertools
import re

import pytest

from cloud_controller import clouds
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.near_misses import SHORTEST, pattern

KINDS = [kind for each in clouds.descriptors() for kind in each.catalogue.kinds or (each.catalogue,)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.cloud} {kind.kind}".strip())
def test_the_parser_refuses_what_the_pattern_matches(kind: Catalogue) -> None:
    near = re.compile(pattern(kind.by_name, kind.prefixes))
    # The shorter the name, the farther away is a slip.
    short = min((name for name in kind.by_name if len(name) >= SHORTEST), key=len)
    others = [name for name in kind.by_name if not name.startswith(kind.prefixes)]
    slips = 0
    for name in (short, *others):
        domain, _, rest = name.partition("/")
        for at, put in itertools.product(range(len(rest) - 1), ("", "qqq")):
            wrong = f"{domain}/{rest[:at]}{put}{rest[at + 2 :]}"
            if near.fullmatch(wrong) and kind.entry(wrong) is None:
                slips += 1
                with pytest.raises(InvalidConfiguration, match="unknown on"):
                    kind.parse({wrong: "x"})

    assert slips > 50


def test_a_name_of_another_cloud_is_not_matched() -> None:
    near = re.compile(pattern(["a.example/this-cloud-load-balancer-type"], ["a.example/this-cloud-load-balancer-"]))

    assert near.fullmatch("a.example/this-cloud-loadbalancer-type")
    assert near.fullmatch("a.example/tihs-cloud-load-balancer-type")
    assert not near.fullmatch("a.example/other-cloud-load-balancer-type")
    assert not near.fullmatch("b.example/this-cloud-loadbalancer-type")

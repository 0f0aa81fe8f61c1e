"""What AWS's cloud config decides about Services: which classes are served, and what security groups leave room for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from cloud_controller.clouds.aws.annotation_entries import AWS_LBC_CLASS, CLASSES
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.ip_permissions import MOST_GROUPS
from cloud_controller.clouds.aws.refusals import EVERYBODY
from cloud_controller.clouds.common.refusals import RANGES, refused_ranges
from cloud_controller.load_balancers.refusals import Refusal
from cloud_controller.load_balancers.terms import Term, say, words

_GROUPS, _EXTRA, _LISTS = (
    words(name) for name in ("security_groups", "extra_security_groups", "security_group_prefix_lists")
)


def of_config(config: Config) -> tuple[Refusal, ...]:
    """The rules, after those of the catalogue."""
    return _rules(config.elb_security_group, config.disable_security_group_ingress)


def served_classes(config: Config) -> frozenset[str]:
    """The values of `spec.loadBalancerClass` that this controller serves."""
    return frozenset((*CLASSES, *((AWS_LBC_CLASS,) if config.serve_nlb_class else ())))


@lru_cache(8)
def _rules(of_all: str | None, disable_ingress: bool) -> tuple[Refusal, ...]:
    return (*_room(1 if of_all else 0, 0 if disable_ingress else 1), *(_deciding(of_all) if of_all else ()))


def _room(by_config: int, of_nodes: int) -> Iterator[Refusal]:
    """Groups that a Service names, and those that the controller adds: by which nodes admit traffic, and its own."""
    most = f"at most {MOST_GROUPS} security groups in total"
    both = Term(f"({_GROUPS.cel} + {_EXTRA.cel})", lambda asked: (*_GROUPS.of(asked), *_EXTRA.of(asked)))
    with_config = Term(f"({_EXTRA.cel}.size() + {by_config})", lambda asked: len(_EXTRA.of(asked)) + by_config)
    why = "{} security groups leave no room for those that the controller adds"
    for argument, when in (("extra_security_groups", _EXTRA.any), ("security_groups", ~_EXTRA.any)):
        too_many = when & _GROUPS.any & both.size.above(MOST_GROUPS - of_nodes)
        yield Refusal(argument, too_many, say(why, both.size), most)
    too_many = ~_GROUPS.any & _EXTRA.size.above(MOST_GROUPS - of_nodes - 1)
    yield Refusal("extra_security_groups", too_many, say(why, with_config), most)


def _deciding(group: str) -> Iterator[Refusal]:
    """Clients that a Service restricts although the group of the cloud config decides."""
    deciding = f"ElbSecurityGroup {group} in the cloud config"
    why = f"would have no effect: {deciding} decides which clients may connect"
    yield from refused_ranges(~_GROUPS.any & ~EVERYBODY, why, "none")
    yield Refusal("security_group_prefix_lists", ~_GROUPS.any & ~RANGES.any & _LISTS.any, why, "none")

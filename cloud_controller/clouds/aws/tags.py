"""AWS's lists of key-value pairs (tags, attributes), and reads of many resources' tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls, batches

_A_CALL = 20
"""The most load balancers or target groups in one DescribeTags call."""

Tags = dict[str, dict[str, str]]
"""Tags by resource."""


def tag_list(pairs: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags or attributes as a list for AWS's API."""
    return [{"Key": key, "Value": value} for key, value in sorted(pairs.items())]


def from_tag_list(pairs: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Tags or attributes from a list of AWS's API."""
    return {each["Key"]: each.get("Value", "") for each in pairs}


def tags_of(thing: Mapping[str, Any]) -> dict[str, str]:
    """The tags in a description of a resource."""
    return from_tag_list(thing.get("Tags") or ())


def of_many(things: Iterable[str], ask: Callable[[Sequence[str]], Tags], concurrently: ConcurrentCalls) -> Tags:
    """The current tags of these resources, read in batches. Deleted resources, for which `ask` raises NotFound, are
    absent."""
    answers = concurrently(partial(_of_some, part, ask) for part in batches(sorted(things), _A_CALL))
    return {thing: tags for answer in answers for thing, tags in answer.items()}


def _of_some(things: Sequence[str], ask: Callable[[Sequence[str]], Tags]) -> Tags:
    try:
        return ask(things)
    except NotFound:
        if len(things) == 1:
            return {}
        return {thing: tags for each in things for thing, tags in _of_some([each], ask).items()}

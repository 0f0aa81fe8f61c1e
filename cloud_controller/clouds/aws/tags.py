"""Tags, and what else AWS has as pairs of key and value; and how the tags of many things are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.aws.concurrent_calls import ConcurrentCalls

_A_CALL = 20
"""Things of load balancing whose tags AWS tells at once."""

Tags = dict[str, dict[str, str]]
"""Tags by the thing that has them."""


def tag_list(pairs: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags, or attributes, as AWS takes them."""
    return [{"Key": key, "Value": value} for key, value in sorted(pairs.items())]


def from_tag_list(pairs: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Tags, or attributes, as AWS tells them."""
    return {each["Key"]: each.get("Value", "") for each in pairs}


def tags_of(thing: Mapping[str, Any]) -> dict[str, str]:
    """The tags of something that AWS describes with them."""
    return from_tag_list(thing.get("Tags") or ())


def of_many(things: Iterable[str], ask: Callable[[Sequence[str]], Tags], concurrently: ConcurrentCalls) -> Tags:
    """The tags of these now, some at a time; those that are gone are absent, of which `ask` raises NotFound."""
    wanted = sorted(things)
    parts = [wanted[start : start + _A_CALL] for start in range(0, len(wanted), _A_CALL)]
    answers = concurrently([partial(_of_some, part, ask) for part in parts])
    return {thing: tags for answer in answers for thing, tags in answer.items()}


def _of_some(things: Sequence[str], ask: Callable[[Sequence[str]], Tags]) -> Tags:
    try:
        return ask(things)
    except NotFound:
        if len(things) == 1:
            return {}
        return {thing: tags for each in things for thing, tags in _of_some([each], ask).items()}

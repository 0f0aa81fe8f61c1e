"""Members that a cloud refuses, and with each the whole call: the others are sent without them.

A Node may outlive its machine, and an EndpointSlice its pod. One such member must not keep the others out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from cloud_controller.cloud_errors import CloudError, InvalidConfiguration, LeftOut
from cloud_controller.load_balancers.backends import Member

T = TypeVar("T")

_WORD = re.compile(r"[0-9A-Za-z:._-]+")
_NAMED = 5
_ALLOWED = "running machines and pods of its network; delete the Node of a machine that is gone"


def send_fit(
    members: Sequence[T],
    send: Callable[[Sequence[T]], object],
    refuses: Callable[[CloudError], bool],
    names: Callable[[T], Collection[str]],
) -> dict[T, CloudError]:
    """Send the members in one call, and again without those that the cloud refuses; return these, each with the error.

    The cloud's message may name them (by one of `names`). Otherwise the halves are sent, down to a single member.
    `refuses`: whether an error concerns single members; any other is raised.
    """
    if not members:
        return {}
    try:
        send(members)
    except CloudError as error:
        if not refuses(error):
            raise
        refused = named_in(error, members, names)
        if not refused and len(members) > 1:
            half = len(members) // 2
            parts = (members[:half], members[half:])
            return {key: why for part in parts for key, why in send_fit(part, send, refuses, names).items()}
        found = dict.fromkeys(refused or members, error)
        return found | send_fit([each for each in members if each not in found], send, refuses, names)
    return {}


def named_in(error: CloudError, members: Sequence[T], names: Callable[[T], Collection[str]]) -> list[T]:
    """The members that the error names."""
    words = {word.rstrip(".:") for word in _WORD.findall(str(error))}
    return [each for each in members if words.intersection(names(each))]


def require_none(refused: Mapping[Member, CloudError]) -> None:
    """Raise LeftOut if the cloud refused members; the others are in."""
    if not refused:
        return
    named = [f"{each.instance_id} ({each.address}:{each.port})" for each in refused]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    why = {
        each.key: error.why if isinstance(error, InvalidConfiguration) else str(error)
        for each, error in refused.items()
    }
    raise LeftOut("members", f"{', '.join(named[:_NAMED])}{more}: {next(iter(why.values()))}", _ALLOWED, why)

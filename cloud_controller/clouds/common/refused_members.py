"""Members that a cloud refuses, and with each the whole call: the others are sent without them.

A Node may outlive its machine, and an EndpointSlice its pod. One such member must not keep the others out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from cloud_controller.cloud_errors import CloudError, InvalidConfiguration, LeftOut, Postponed
from cloud_controller.listed import listed
from cloud_controller.load_balancers.backends import Member

T = TypeVar("T")

_REQUEST_ID = re.compile(r" \(request [^()]+\)")
_WORD = re.compile(r"[0-9A-Za-z:._-]+")
_MOST_REFUSED = 50
"""Refused calls of one operation, after which no member is tried singly."""
_ALLOWED = "running machines and pods of its network; delete the Node of a machine that is gone"


def send_fit(
    calls: Iterable[Sequence[T]],
    send: Callable[[Sequence[T]], object],
    refuses: Callable[[CloudError], bool],
    names: Callable[[T], Collection[str]],
    member: Callable[[T], Member],
) -> dict[T, CloudError]:
    """Make the calls, each again without the members that the cloud refuses; return these, each with the error.

    The cloud's message may name them (by one of `names`). Otherwise the halves are sent, down to a single member, but
    after some refused calls the rest of a refused call counts as refused. `refuses`: whether an error concerns single
    members; any other is raised.
    """
    refused: dict[T, CloudError] = {}
    failed = 0
    due = [each for each in calls if each][::-1]
    while due:
        sent = due.pop()
        try:
            with told_when_postponed({member(each): why for each, why in refused.items()}):
                send(sent)
        except CloudError as error:
            if not refuses(error):
                raise
            failed += 1
            found = named_in(error, sent, names)
            if failed >= _MOST_REFUSED:
                why = CloudError(f"not tried singly after {_MOST_REFUSED} refused calls, the last with: {_why(error)}")
                refused |= dict.fromkeys(sent, why) | dict.fromkeys(found, error)
            elif found or len(sent) == 1:
                refused |= dict.fromkeys(found or sent, error)
                due += [rest] if (rest := [each for each in sent if each not in refused]) else []
            else:
                half = len(sent) // 2
                due += [sent[half:], sent[:half]]
    return refused


@contextmanager
def told_when_postponed(refused: Mapping[Member, CloudError]) -> Iterator[None]:
    """A Postponed of the rest tells who was refused, so that the next plan does not send these."""
    try:
        yield
    except Postponed as error:
        error.members = {**error.members, **_reasons(refused)}
        raise


def named_in(error: CloudError, members: Sequence[T], names: Callable[[T], Collection[str]]) -> list[T]:
    """The members that the error names."""
    words = {word.rstrip(".:") for word in _WORD.findall(str(error))}
    return [each for each in members if words.intersection(names(each))]


def require_none(refused: Mapping[Member, CloudError]) -> None:
    """Raise LeftOut if the cloud refused members; the others are in."""
    if not refused:
        return
    named = [f"{each.instance_id} ({each.address}:{each.port})" for each in refused]
    why = _reasons(refused)
    raise LeftOut("members", f"{listed(named)}: {next(iter(why.values()))}", _ALLOWED, why)


def _reasons(refused: Mapping[Member, CloudError]) -> dict[tuple[str, int], str]:
    return {each.key: _why(error) for each, error in refused.items()}


def _why(error: CloudError) -> str:
    """The reason without the ID of the request, which would make each refusal another one."""
    return _REQUEST_ID.sub("", error.why if isinstance(error, InvalidConfiguration) else str(error))

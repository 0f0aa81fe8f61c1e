"""Members that a cloud refuses are left out, however its errors name them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cloud_controller.cloud_errors import AccessDenied, CloudError, Conflict, LeftOut, NotFound, Postponed
from cloud_controller.clouds.common.refused_members import require_none, send_fit
from cloud_controller.load_balancers.backends import Member

MEMBERS = tuple(Member(f"10.0.0.{number}", 30080, f"i-{number}") for number in range(1, 9))


class Cloud:
    """Refuses a call with machines that are gone, of which its message names none, the first, or all."""

    def __init__(self, *gone: int, names: int = 0) -> None:
        self.gone = {f"i-{number}" for number in gone}
        self.names = names
        self.members: list[Member] = []
        self.calls = 0

    def send(self, members: Sequence[Member]) -> None:
        self.calls += 1
        if refused := [each.instance_id for each in members if each.instance_id in self.gone]:
            raise NotFound(f"no such machines: {', '.join(map(repr, refused[: self.names]))}.")
        self.members += members

    def refused(self, members: Sequence[Member] = MEMBERS) -> dict[Member, CloudError]:
        is_of_members = lambda error: isinstance(error, NotFound)  # noqa: E731
        return send_fit([members], self.send, is_of_members, lambda each: (each.instance_id,), lambda each: each)


@pytest.mark.parametrize(("names", "calls"), [(9, 2), (1, 3), (0, 11)], ids=["all", "the first", "none"])
def test_all_others_are_in_and_each_refused_one_has_its_error(names: int, calls: int) -> None:
    cloud = Cloud(3, 6, names=names)

    refused = cloud.refused()

    assert {each.instance_id for each in refused} == {"i-3", "i-6"}
    assert sorted(cloud.members) == [each for each in MEMBERS if each not in refused]
    assert cloud.calls == calls


def test_without_a_refused_member_there_is_one_call_and_without_members_none() -> None:
    cloud = Cloud()

    assert cloud.refused() == cloud.refused(()) == {}
    assert cloud.calls == 1


def test_an_error_that_is_not_of_single_members_is_raised() -> None:
    def denied(_: Sequence[Member]) -> None:
        raise AccessDenied("i-3")

    with pytest.raises(AccessDenied):
        send_fit([MEMBERS], denied, lambda _: False, lambda each: (each.instance_id,), lambda each: each)


def test_the_error_names_a_few_members_and_has_the_reason_of_each() -> None:
    with pytest.raises(LeftOut, match=r"i-1 \(10.0.0.1:30080\), .* and 3 more: stopped .*delete the Node") as found:
        require_none(dict.fromkeys(MEMBERS, Conflict("stopped")))

    assert found.value.members == {each.key: "stopped" for each in MEMBERS}


def test_members_are_no_longer_tried_singly_after_many_refused_calls() -> None:
    members = tuple(Member(f"10.0.1.{number}", 30080, f"i-{number}") for number in range(200))
    cloud = Cloud(*range(200))

    refused = cloud.refused(members)

    assert refused.keys() == {*members}
    assert cloud.calls < 60
    assert "not tried singly after 50 refused calls" in str(refused[members[-1]])


def test_the_remembered_reason_has_no_id_of_a_request() -> None:
    with pytest.raises(LeftOut) as found:
        require_none({MEMBERS[0]: Conflict("stopped (request 4F-1)")})

    assert found.value.members == {MEMBERS[0].key: "stopped"}


def test_what_is_postponed_tells_who_was_refused_before() -> None:
    cloud = Cloud(1)

    def send(members: Sequence[Member]) -> None:
        if members == MEMBERS[4:]:
            raise Postponed("busy")
        cloud.send(members)

    with pytest.raises(Postponed) as found:
        send_fit(
            [MEMBERS[:4], MEMBERS[4:]],
            send,
            lambda error: isinstance(error, NotFound),
            lambda each: (each.instance_id,),
            lambda each: each,
        )

    assert found.value.members.keys() == {MEMBERS[0].key}

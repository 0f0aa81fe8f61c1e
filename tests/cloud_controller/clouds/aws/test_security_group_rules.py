"""Which group holds which rule: as few groups as hold them all, and as few changes as lead there."""

from __future__ import annotations

from cloud_controller.clouds.aws.security_group_rules import changes, distributed


def rules(*numbers: int) -> frozenset[str]:
    return frozenset(f"tcp {number}-{number} 10.0.0.0/8" for number in numbers)


def test_few_rules_are_in_one_group() -> None:
    assert distributed([], rules(1, 2, 3), most=3) == [rules(1, 2, 3)]


def test_no_rules_still_need_a_group() -> None:
    assert distributed([], rules(), most=3) == [rules()]


def test_rules_beyond_the_quota_fill_further_groups() -> None:
    assert distributed([], rules(1, 2, 3, 4, 5, 6, 7), most=3) == [rules(1, 2, 3), rules(4, 5, 6), rules(7)]


def test_a_rule_stays_in_its_group_while_others_come_and_go() -> None:
    current = [rules(1, 2, 3), rules(4, 5)]

    assert distributed(current, rules(1, 3, 4, 5, 6), most=3) == [rules(1, 3, 6), rules(4, 5)]


def test_rules_of_a_group_that_is_not_needed_any_more_move() -> None:
    assert distributed([rules(1, 2, 3), rules(4)], rules(1, 4), most=3) == [rules(1, 4)]


def test_a_rule_that_two_groups_have_is_kept_in_one() -> None:
    assert distributed([rules(1, 2), rules(2, 3)], rules(1, 2, 3, 4), most=3) == [rules(1, 2, 4), rules(3)]


def test_additions_come_before_removals_so_that_nobody_is_shut_out() -> None:
    assert changes(rules(1, 2), rules(2, 3), most=3) == [("add", rules(3)), ("remove", rules(1))]


def test_where_the_quota_leaves_no_room_removals_come_first() -> None:
    assert changes(rules(1, 2, 3), rules(2, 3, 4), most=3) == [("remove", rules(1)), ("add", rules(4))]


def test_equal_rules_need_no_call() -> None:
    assert changes(rules(1), rules(1)) == []

"""What every cloud tells the rules, and how it is found."""

from __future__ import annotations

from importlib.metadata import entry_points

from cloud_controller import clouds as controllers
from policy import clouds
from policy.checklist import POLICIES


def test_every_cloud_with_controllers_is_known_to_the_rules_by_its_own_name() -> None:
    known = [cloud.name for cloud in clouds.descriptors()]

    assert known == sorted(point.name for point in entry_points(group="policy.clouds"))
    assert {*controllers.names()} <= {*known}


def test_every_note_of_a_cloud_is_about_a_rule_of_the_pack() -> None:
    rules = {policy.name for policy in POLICIES}
    strays = {(cloud.name, rule) for cloud in clouds.descriptors() for rule in cloud.notes if rule not in rules}

    assert strays == set()


def test_the_pack_has_the_rules_of_every_cloud_after_those_of_all() -> None:
    own = [policy for cloud in clouds.descriptors() for policy in cloud.policies]

    assert own and POLICIES[-len(own) :] == own

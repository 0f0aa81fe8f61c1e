"""The tags that a Service gives its load balancer, within what the cloud allows."""

from __future__ import annotations

import re

import pytest

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.common.tags import TagRules

RULES = TagRules(
    most=5,
    longest_key=8,
    longest_value=4,
    pattern=re.compile("[A-Za-z/]*"),
    characters="letters and /",
    reserved=("cloud/", "own/"),
)
OWN = {"Owner": "web", "own/uid": "u"}


def test_the_services_tags_are_added_to_the_controllers_own() -> None:
    assert RULES.merged("tags", {"team": "edge", "empty": ""}, OWN, later=1) == {"team": "edge", "empty": "", **OWN}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Owner": "x"}, "^tags: 'Owner' is a reserved tag key"),
        ({"cloud/x": ""}, "'cloud/x' is a reserved tag key"),
        ({"OWN/new": ""}, "'OWN/new' is a reserved tag key"),
        ({"te-am": ""}, r"te-am= contains invalid characters \(allowed: letters and /\)$"),
        ({"team": "1"}, "team=1 contains invalid characters"),
        (
            {"teamteamt": ""},
            r"the tag 'teamteam' is too long \(allowed: at most 8 characters in a key and 4 in a value",
        ),
        ({"team": "edges"}, "the tag 'team' is too long"),
        ({"a": "", "b": "", "c": ""}, r"3 tags are too many \(allowed: at most 2\)$"),
    ],
)
def test_tags_that_the_cloud_or_the_controller_does_not_allow_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfiguration, match=message):
        RULES.merged("tags", given, OWN, later=1)

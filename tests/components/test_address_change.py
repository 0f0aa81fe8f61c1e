"""What is said of a change of annotations that costs the address."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.aws.annotations import CATALOGUE
from components.address_change import address_changes

PREFIX = "service.beta.kubernetes.io/aws-load-balancer-"
NLB = {f"{PREFIX}type": "nlb"}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        pytest.param(NLB, {}, "type changes from 'nlb' to none", id="another kind"),
        pytest.param(NLB, {**NLB, f"{PREFIX}internal": "true"}, "internal changes from False to True", id="the scheme"),
    ],
)
def test_a_change_that_replaces_the_load_balancer_is_told_with_both_values(
    before: dict[str, str], after: dict[str, str], said: str
) -> None:
    [line] = address_changes(CATALOGUE, before, after)

    assert said in line
    assert "the address changes" in line


@pytest.mark.parametrize(
    "after",
    [
        pytest.param({**NLB, f"{PREFIX}cross-zone-load-balancing-enabled": "true"}, id="a change in place"),
        pytest.param({**NLB, f"{PREFIX}internal": "false"}, id="the default, said"),
        pytest.param({**NLB, "example.com/team": "edge"}, id="others' annotation"),
        pytest.param({f"{PREFIX}type": "nbl"}, id="a value that is refused anyway"),
    ],
)
def test_any_other_change_is_not_spoken_of(after: dict[str, str]) -> None:
    assert not address_changes(CATALOGUE, NLB, after)

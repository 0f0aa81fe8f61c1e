"""What is said of a change of annotations that costs the address."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.aws.annotations import AWS_LBC_CLASS, CATALOGUE
from components.address_change import address_changes

PREFIX = "service.beta.kubernetes.io/aws-load-balancer-"
THE_OTHERS, OURS = AWS_LBC_CLASS, "cloud-controller/nlb"
NLB = {f"{PREFIX}type": "nlb"}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        pytest.param(NLB, {}, "type changes from 'nlb' to 'classic'", id="another kind"),
        pytest.param(NLB, {**NLB, f"{PREFIX}internal": "true"}, "internal changes from False to True", id="the scheme"),
    ],
)
def test_a_change_that_replaces_the_load_balancer_warns_with_both_values(
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
def test_a_change_that_keeps_the_address_warns_of_nothing(after: dict[str, str]) -> None:
    assert not address_changes(CATALOGUE, NLB, after)


@pytest.mark.parametrize(
    ("of_class", "after", "said"),
    [
        pytest.param(THE_OTHERS, {"internal": "true"}, False, id="internal, which that class is anyway"),
        pytest.param(THE_OTHERS, {"scheme": "internal"}, False, id="the same in AWS's words"),
        pytest.param(THE_OTHERS, {"internal": "false"}, True, id="public, which that class is not"),
        pytest.param(THE_OTHERS, {"scheme": "internet-facing"}, True, id="public in AWS's words"),
        pytest.param(OURS, {"internal": "true"}, True, id="internal, which our class is not"),
        pytest.param(OURS, {"scheme": "internet-facing"}, False, id="public, which our class is anyway"),
        pytest.param(OURS, {"type": "nlb"}, False, id="the kind that the class says"),
        pytest.param(None, {"type": "classic"}, False, id="the kind that a Service without a class gets"),
    ],
)
def test_the_default_of_an_annotation_depends_on_the_services_class(
    of_class: str | None, after: dict[str, str], said: bool
) -> None:
    annotations = {f"{PREFIX}{name}": text for name, text in after.items()}

    assert bool(address_changes(CATALOGUE, {}, annotations, of_class)) is said

"""Facts about the cloud that could not be read."""

from __future__ import annotations

import pytest

from cloud_controller.cloud_errors import AccessDenied, CloudError, InvalidConfiguration, Throttled, Unavailable
from cloud_controller.load_balancers.facts import Fact


def failing(error: CloudError) -> int:
    raise error


@pytest.mark.parametrize("error", [InvalidConfiguration("VPC", "not set"), AccessDenied("no")])
def test_an_error_of_the_configuration_or_of_rights_is_raised_where_the_fact_is_needed(error: CloudError) -> None:
    fact = Fact.read(lambda: failing(error))

    with pytest.raises(type(error), match=str(error)):
        _ = fact.value


@pytest.mark.parametrize("error", [Throttled("slow down", 1.0), Unavailable("no answer")])
def test_an_error_that_passes_is_raised_by_the_read(error: CloudError) -> None:
    with pytest.raises(type(error)):
        Fact.read(lambda: failing(error))


def test_a_fact_that_was_read_has_its_value() -> None:
    assert Fact.read(lambda: 7).value == 7

"""How what two controllers leave is compared phase by phase."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compatibility.differences import Found
from tests.compatibility.phases import differences


def state(refused: bool = False, **fields: Any) -> dict[str, Any]:
    return {"refused": refused, **fields}


def test_a_difference_that_stays_is_listed_after_the_phase_in_which_it_appears() -> None:
    peer, ours = (dict.fromkeys(("a", "a: restart"), state(port=port)) for port in (80, 81))

    assert differences(peer, ours) == [Found("a", "port", 80, 81)]


def test_a_difference_that_goes_and_comes_back_is_listed_again() -> None:
    peer = {name: state(port=80) for name in ("a", "a: touched", "a: restart")}
    ours = {**peer, "a": state(port=81), "a: restart": state(port=81)}

    assert differences(peer, ours) == [Found("a", "port", 80, 81), Found("a: restart", "port", 80, 81)]


def test_after_a_deletion_a_difference_that_stays_is_listed_again() -> None:
    peer, ours = (dict.fromkeys(("a", "a: deletion"), state(port=port)) for port in (80, 81))

    assert differences(peer, ours) == [Found("a", "port", 80, 81), Found("a: deletion", "port", 80, 81)]


def test_a_difference_of_the_scenario_before_is_listed_again() -> None:
    peer, ours = (dict.fromkeys(("a", "b"), state(port=port)) for port in (80, 81))

    assert differences(peer, ours) == [Found("a", "port", 80, 81), Found("b", "port", 80, 81)]


@pytest.mark.parametrize("missing", ["a", "a: restart"])
def test_a_phase_that_only_one_has_is_an_error_that_names_it(missing: str) -> None:
    whole = {"a": state(), "a: restart": state()}
    part = {name: each for name, each in whole.items() if name != missing}

    for peer, ours in ((whole, part), (part, whole)):
        with pytest.raises(ValueError, match=rf"has: {missing}$"):
            differences(peer, ours)


def test_the_phases_after_a_refused_creation_are_not_compared() -> None:
    peer, ours = {"a": state(), "a: restart": state()}, {"a": state(refused=True)}

    assert differences(peer, ours) == [Found("a", "refused", False, True)]

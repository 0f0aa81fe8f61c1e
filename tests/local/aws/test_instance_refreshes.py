"""Which machines an instance refresh replaces next."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from local.aws.scaling import to_replace


def group(machines: str, outdated: str) -> Any:
    states = [SimpleNamespace(instance=SimpleNamespace(id=machine)) for machine in machines]
    return SimpleNamespace(instance_states=states, outdated=list(outdated))


@pytest.mark.parametrize(
    ("groups", "not_ready", "expected"),
    [
        pytest.param([group("abc", "abc")], "", "a", id="one at a time"),
        pytest.param([group("bcd", "abc")], "", "b", id="then the next"),
        pytest.param([group("bcd", "abc")], "d", "", id="once the new one runs"),
        pytest.param([group("bcd", "abc")], "x", "b", id="whatever others do"),
        pytest.param([group("def", "abc")], "", "", id="until none of the older template is left"),
        pytest.param([group("ab", "ab"), group("cd", "d")], "", "ad", id="groups go on at the same time"),
    ],
)
def test_machines_are_replaced_one_after_another(groups: list[Any], not_ready: str, expected: str) -> None:
    backend: Any = SimpleNamespace(autoscaling_groups=dict(enumerate(groups)))

    assert list(to_replace(backend, not_ready)) == list(expected)

"""A pack's configuration: defaults, precedence, and rejected values."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.config import PolicyConfigError, Rule, RuleConfig, parse, reconcile

PORTS = Rule(
    "ports",
    "advisory",
    {"most": {"type": "integer", "default": 3}, "name": {"type": "string", "format": "regex"}},
    required=["most"],
)
NAMES = Rule("names", "mandatory")


def final(given: Any = None, initial: dict[str, RuleConfig] | None = None) -> dict[str, RuleConfig]:
    return reconcile([PORTS, NAMES], initial or {}, parse(given or {}))


def test_without_configuration_each_rule_has_its_own_level_and_its_schemas_defaults() -> None:
    assert final() == {"ports": RuleConfig("advisory", {"most": 3}), "names": RuleConfig("mandatory", {})}


def test_a_level_may_be_given_alone_or_with_settings() -> None:
    found = final({"ports": {"enforcementLevel": "mandatory", "most": 5}, "names": "disabled"})

    assert found == {"ports": RuleConfig("mandatory", {"most": 5}), "names": RuleConfig("disabled", {})}


def test_a_rules_own_level_overrides_the_one_for_all() -> None:
    found = final({"names": "mandatory", "all": "advisory"})

    assert (found["names"].level, found["ports"].level) == ("mandatory", "advisory")


def test_the_given_configuration_overrides_the_packs_own() -> None:
    found = final({"ports": {"most": 5}}, {"ports": RuleConfig("mandatory", {"most": 4, "name": "a"})})

    assert found["ports"] == RuleConfig("mandatory", {"most": 5, "name": "a"})


def test_settings_of_a_disabled_rule_are_not_checked() -> None:
    assert final({"ports": {"enforcementLevel": "disabled", "most": "many"}})["ports"].level == "disabled"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"prots": "mandatory"}, 'did you mean "ports"'),
        ({"ports": "strict"}, "advisory, mandatory"),
        ({"ports": {"enforcementLevel": 1}}, "1 is not a level"),
        ({"ports": {"most": "many"}}, "'many' is not of type 'integer'"),
        ({"ports": {"name": "("}}, "is not a 'regex'"),
        ({"ports": {"least": 1}}, "'least'"),
        ({"ports": None}, '"ports" must be a level'),
        ({"all": {"most": 1}}, "on single rules"),
        ([], "must be an object"),
    ],
)
def test_an_invalid_configuration_is_refused_with_the_reason(document: Any, said: str) -> None:
    with pytest.raises(PolicyConfigError, match=said):
        reconcile([PORTS, NAMES], {}, parse(document))

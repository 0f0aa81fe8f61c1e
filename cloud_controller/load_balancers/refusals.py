"""What a cloud refuses about a Service although each of its annotations is valid: one rule for each reason. Pure.

Rules are part of a cloud's catalogue. The build of a load balancer raises the first that holds; the API server answers
with the same sentences at `kubectl apply` (`service_admission.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers.annotation import Annotation
from cloud_controller.load_balancers.settings import Settings
from cloud_controller.load_balancers.terms import PORTS, Asked, Saying, Term, say

MOST_PORTS = 250
"""Of a Service, where the cloud's own limit is a quota that can be raised: a model has a member for each port of each
node."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason for which a Service is refused.

    - `setting`: the argument of the refused annotation, or the field of the spec (`spec.…`).
    - `when`: whether it is refused; `why` and `allowed`: what the error says.
    - `each`: a list. The rule holds for the first item for which `when` does; terms of `ITEM` are about that item.
    """

    setting: str | Saying
    when: Term
    why: str | Saying
    allowed: str | Saying
    each: Term | None = None

    def only(self, condition: Term) -> Refusal:
        """The same rule, where this condition holds too."""
        return replace(self, when=condition & self.when)

    def sayings(self, by_argument: Mapping[str, Annotation]) -> tuple[Saying, Saying, Saying]:
        """The refused setting, why, and what is allowed instead."""
        setting = self.setting
        if isinstance(setting, str) and not setting.startswith("spec."):
            setting = f"annotation {by_argument[setting].name}"
        field, why, allowed = (
            say(each) if isinstance(each, str) else each for each in (setting, self.why, self.allowed)
        )
        return field, why, allowed

    def cel(self, by_argument: Mapping[str, Annotation]) -> str:
        """The sentences of what it refuses, as a list in CEL."""
        field, why, allowed = (each.cel for each in self.sayings(by_argument))
        sentence = f"{field} + ': ' + {why} + ' (allowed: ' + {allowed} + ')'"
        if self.each is None:
            return f"({self.when.cel} ? [{sentence}] : [])"
        return f"{self.each.cel}.filter(item, {self.when.cel}).map(item, {sentence})"


def too_many_ports(most: int = MOST_PORTS, source: str = "this controller's bound") -> Refusal:
    """More ports than a load balancer has room for: a cloud's first rule, because the others look at each port."""
    count = PORTS.size
    return Refusal("spec.ports", count.above(most), say("{} ports are too many", count), f"at most {most}: {source}")


def refuse(settings: Settings, spec: Mapping[str, Any], rules: Sequence[Refusal]) -> None:
    """Raise InvalidConfiguration for the first of these rules that holds."""
    whole = Asked(settings, spec)
    for rule in rules:
        for asked in (whole,) if rule.each is None else rule.each.each(whole):
            if rule.when.of(asked):
                field, why, allowed = (each.of(asked) for each in rule.sayings(settings.by_argument))
                raise InvalidConfiguration(field, why, allowed)

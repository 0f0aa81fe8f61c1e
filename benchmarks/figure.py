"""A benchmark's result: one figure and the bound that it is compared with."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` in `unit`; `bound` in the same unit is a lower bound, a peer's figure, or the project's promise.

    No bound: nothing is promised, and nothing to compare with is known. `floor`, if present, can't be undercut: it was
    measured in the same run without the part that the figure is about, or follows from the cloud's API.
    """

    name: str
    value: float
    unit: str
    bound: float | None = None
    floor: float | None = None

    @property
    def ratio(self) -> float | None:
        """The figure divided by its bound: below 1 is better where less is better."""
        return None if self.bound is None else self.value / self.bound

    def to_json(self) -> str:
        """One line."""
        numbers = {"value": self.value, "bound": self.bound, "ratio": self.ratio, "floor": self.floor}
        known = {name: round(number, 3) for name, number in numbers.items() if number is not None}
        return json.dumps({"name": self.name, "value": known.pop("value"), "unit": self.unit, **known})

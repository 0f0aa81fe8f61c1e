"""A benchmark's result: one figure and the bound that it is compared with."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` in `unit`; `bound` in the same unit is a lower bound, a peer's figure, or the project's promise.

    `floor`, if present, was measured in the same run without the part that the figure is about.
    """

    name: str
    value: float
    unit: str
    bound: float
    floor: float | None = None

    @property
    def ratio(self) -> float:
        """The figure divided by its bound: below 1 is better where less is better."""
        return self.value / self.bound

    def to_json(self) -> str:
        """One line."""
        fields = {**asdict(self), "value": round(self.value, 3), "ratio": round(self.ratio, 3)}
        floor = fields.pop("floor")
        return json.dumps(fields if floor is None else fields | {"floor": round(floor, 3)})

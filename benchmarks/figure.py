"""What a benchmark yields: one figure beside the bound that it is held against."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` in `unit`; `bound` in the same unit is a lower bound, a peer's figure, or what the project promises.

    `floor`, where there is one, is what was measured in the same run without the part that the figure is about.
    """

    name: str
    value: float
    unit: str
    bound: float
    floor: float | None = None

    @property
    def ratio(self) -> float:
        """How the figure stands to its bound: below 1 is better where less is better."""
        return self.value / self.bound

    def to_json(self) -> str:
        """One line."""
        told = {**asdict(self), "value": round(self.value, 3), "ratio": round(self.ratio, 3)}
        floor = told.pop("floor")
        return json.dumps(told if floor is None else told | {"floor": round(floor, 3)})

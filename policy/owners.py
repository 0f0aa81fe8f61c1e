"""What holds the lines of the checklist besides rules: components, and what is still to be built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Component:
    """A component that makes a line so: its module, what it does, and the test that shows it."""

    module: str
    does: str
    test: str
    """FILE::TEST."""


COMPONENTS: Final[dict[str, tuple[Component, ...]]] = {}
"""By line."""

_CHECK = "check of `cloud-controller doctor`"

OPEN: Final = {
    **dict.fromkeys(("11.1.1", "11.1.2", "11.1.3"), _CHECK),
    **{f"11.2.{number}": _CHECK for number in range(1, 10)},
    "11.3.8": "component of alert rules",
    **{f"11.4.{number}": _CHECK for number in range(1, 9)},
}
"""What is still to be built for a line, beside what holds it already."""

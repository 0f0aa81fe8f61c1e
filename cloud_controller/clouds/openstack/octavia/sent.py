"""What became of an operation that was sent to Octavia."""

from __future__ import annotations

from dataclasses import dataclass

from cloud_controller.cloud_errors import LeftOut
from cloud_controller.load_balancers.operations import Operation


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of it.

    - `busy`: Octavia works on it.
    - `unfinished`: what of it must still be sent, as a clause.
    - `covered`: other operations that the same call carried out.
    - `left_out`: why a part of it was not sent.
    """

    busy: bool = True
    unfinished: str = ""
    covered: tuple[Operation, ...] = ()
    left_out: LeftOut | None = None

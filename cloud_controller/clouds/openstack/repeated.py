"""Changes of Neutron's objects that read what they change, so that nothing that others write meanwhile is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cloud_controller.cloud_errors import Conflict

_ATTEMPTS: Final = 4


def repeated(change: Callable[[], None]) -> None:
    """Carry out a change, again if another one was faster. Raises Conflict if others always are."""
    for attempt in range(_ATTEMPTS):
        try:
            change()
            return
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise

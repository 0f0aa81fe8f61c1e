"""What builds depend on besides Services and backends: facts about the cloud, read before planning.

`LoadBalancers.facts` reads them; the plan only passes them on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from cloud_controller.cloud_errors import AccessDenied, CloudError, InvalidConfiguration

Facts = Any
"""An immutable value of the cloud's own type; None if the cloud's builds need no facts."""

T = TypeVar("T")


@dataclass(frozen=True)
class Fact(Generic[T]):
    """A fact, or the error of reading it.

    An invalid configuration and a missing right are errors of the Services whose builds need the fact, not of the read.
    """

    _value: T | None = None
    error: CloudError | None = None

    @classmethod
    def read(cls, read: Callable[[], T]) -> Fact[T]:
        """Read the fact. Raises all other errors, such as Throttled."""
        try:
            return cls(read())
        except (InvalidConfiguration, AccessDenied) as error:
            return cls(error=error)

    @property
    def value(self) -> T:
        """The fact. Raises its error."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        return cast("T", self._value)

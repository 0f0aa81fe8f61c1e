"""What one Service's annotations say, as typed values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cloud_controller.load_balancers.annotation import Annotation, Value, member_argument


@dataclass(frozen=True, slots=True)
class Settings:
    """The parsed annotations of one Service. `given`: the set values by argument name.

    `by_argument`: the entries of the catalogue; `ignored`: those that the Service sets but the cloud does not support.
    `kind`: the catalogue's kind of load balancers.
    """

    by_argument: Mapping[str, Annotation]
    given: Mapping[str, Value]
    ignored: tuple[Annotation, ...] = ()
    kind: str = ""

    def text(self, argument: str) -> str | None:
        """The value or default of a `str` entry."""
        value = self._value(argument)
        return None if value is None else str(value)

    def flag(self, argument: str) -> bool:
        """Whether a `bool` entry is true, by value or default."""
        return self._value(argument) is True

    def number(self, argument: str) -> int | None:
        """The value or default of an `int` entry."""
        value = self._value(argument)
        if value is None or isinstance(value, int):
            return value
        raise TypeError(f"{argument} is not an int in the catalogue")

    def integer(self, argument: str) -> int:
        """Like `number`, for an entry with a default."""
        value = self.number(argument)
        if value is None:
            raise TypeError(f"{argument} has no default in the catalogue")
        return value

    def members(self, argument: str) -> dict[str, Value]:
        """The set values of a family, by suffix."""
        stem = member_argument(argument, "")
        return {name.removeprefix(stem): value for name, value in self.given.items() if name.startswith(stem)}

    def _value(self, argument: str) -> Value | None:
        return self.given.get(argument, self.by_argument[argument].default)

"""Access to Kubernetes objects in the form that the analyzer hands to rules: touching an unknown value raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any


def dig(value: Any, *keys: str) -> Any:
    """The value under these keys; None where one is absent. Raises UnknownValueError."""
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def items(value: Any) -> Iterator[Any]:
    """A list's elements; nothing where there is no list. Raises UnknownValueError at an unknown element."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from value


def each(value: Any) -> Iterator[Callable[[], Any]]:
    """As `items`, but an unknown element raises only when it is called."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        for index in range(len(value)):
            yield partial(value.__getitem__, index)


def plain(value: Any) -> Any:
    """The same of dicts and lists, with numbers that are whole as integers. Raises UnknownValueError."""
    if isinstance(value, Mapping):
        return {key: plain(value[key]) for key in value}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return [*map(plain, value)] if isinstance(value, Sequence) and not isinstance(value, str) else value


def put(value: Any, key: str, new: Any) -> None:
    """Set a field of an object of a resource that is remediated."""
    value[key] = new


class Lazy(Mapping[str, Any]):
    """A mapping whose values are made when they are read, so that an unknown one raises only then."""

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers = makers

    def __getitem__(self, key: str) -> Any:
        return self._makers[key]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __contains__(self, key: object) -> bool:
        return key in self._makers


def object_name(props: Mapping[str, Any]) -> str:
    """`NAMESPACE/NAME`, or `NAME`. Raises UnknownValueError."""
    namespace, name = dig(props, "metadata", "namespace"), dig(props, "metadata", "name") or ""
    return f"{namespace}/{name}" if namespace else str(name)

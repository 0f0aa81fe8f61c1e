"""Ways to change a running stack for a while: what each of them gives back afterwards, and how they go together."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from cloud_controller.kube import Kube, Resource
from tests.e2e.local_stack import LocalStack

Break = Callable[[LocalStack], AbstractContextManager[None]]


class OnCluster(Protocol):
    """A stack on any cloud."""

    @property
    def kube(self) -> Kube: ...


BreakAnywhere = Callable[[OnCluster], AbstractContextManager[None]]


@contextmanager
def changed(stack: OnCluster, resource: Resource, name: str, namespace: str | None, change: Any) -> Iterator[None]:
    """An object changed by a function, and given back its spec, data, rules and metadata afterwards."""
    kube = stack.kube
    before = kube.get(resource, name, namespace)
    after = copy.deepcopy(before)
    change(after)
    kube.replace(resource, after)
    try:
        yield
    finally:
        now = kube.get(resource, name, namespace)
        for part in ("spec", "data", "rules", "subjects"):
            if part in before:
                now[part] = before[part]
        for part in ("annotations", "labels"):
            now["metadata"][part] = before["metadata"].get(part) or {}
        kube.replace(resource, now)


def together(*breaks: Break) -> Break:
    """One after the other, undone in the opposite order."""

    @contextmanager
    def apply(stack: LocalStack) -> Iterator[None]:
        if not breaks:
            yield
            return
        with breaks[0](stack), together(*breaks[1:])(stack):
            yield

    return apply

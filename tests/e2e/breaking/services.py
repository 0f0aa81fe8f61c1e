"""Ways to break Services of type LoadBalancer and the pods behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from cloud_controller.kube import DEPLOYMENTS, SERVICES, Object
from tests.e2e.breaking.changes import Break, BreakAnywhere, OnCluster, changed
from tests.e2e.local_stack import LocalStack


def service(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> BreakAnywhere:
    """One more Service of type LoadBalancer in front of the web workload; its load balancer goes with it."""

    @contextmanager
    def apply(stack: OnCluster) -> Iterator[None]:
        kube = stack.kube
        made = {
            "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app.kubernetes.io/name": "web"},
                "ports": [{"port": 8090, "targetPort": 8080}],
                **spec,
            },
        }
        kube.create(SERVICES, made)
        try:
            yield
        finally:
            kube.delete(SERVICES, name, "default")

    return apply


def of_service(name: str, change: Callable[[Object], None]) -> Break:
    """A change of one of the stack's Services."""
    return lambda stack: changed(stack, SERVICES, name, "default", change)


def annotated(key: str, value: str) -> Callable[[Object], None]:
    def change(found: Object) -> None:
        found["metadata"].setdefault("annotations", {})[key] = value

    return change


def no_pods(stack: LocalStack) -> AbstractContextManager[None]:
    """The web workload scaled to nothing."""

    def change(found: Object) -> None:
        found["spec"]["replicas"] = 0

    return changed(stack, DEPLOYMENTS, "web", "default", change)

"""Ways to break mycloud, and what the CCM has made in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from cloud_controller.load_balancers.model import SERVICE_TAG, SERVICE_UID_TAG
from tests.e2e.breaking.changes import Break
from tests.e2e.local_stack import LocalStack


def fault(operation: str, **more: Any) -> Break:
    """A fault that mycloud shows everybody."""

    @contextmanager
    def apply(stack: LocalStack) -> Iterator[None]:
        stack.cloud.post("admin/faults", {"operation": operation, "count": None, **more})
        try:
            yield
        finally:
            stack.cloud.delete_path("admin/faults")

    return apply


def quota(**limits: int) -> Break:
    """Quotas, and what they were before."""

    @contextmanager
    def apply(stack: LocalStack) -> Iterator[None]:
        before = stack.cloud.get_path("quotas")["quotas"]
        stack.cloud.put("admin/quotas", limits)
        try:
            yield
        finally:
            stack.cloud.put("admin/quotas", {name: before[name] for name in limits})

    return apply


def without_route(stack: LocalStack) -> AbstractContextManager[None]:
    """A route deleted by hand; the daemon writes it again as soon as it can."""

    @contextmanager
    def apply() -> Iterator[None]:
        (network,) = stack.cloud.list("networks")
        table = f"route_tables/{network['route_table_id']}/routes"
        first = sorted(route["destination_cidr"] for route in stack.cloud.list(table))[0]
        stack.cloud.post(f"{table}:batch_delete", {"destination_cidrs": [first]})
        yield

    return apply()


@contextmanager
def load_balancer_of_nobody(stack: LocalStack) -> Iterator[None]:
    """A load balancer of this cluster whose Service nobody knows, as after a restored etcd."""
    cloud = stack.cloud
    template = cloud.list("load_balancers")[0]
    tags = {**template["tags"], SERVICE_UID_TAG: "00000000-0000-0000-0000-000000000000", SERVICE_TAG: "default/nobody"}
    made = cloud.create(
        "load_balancers",
        {"name": "nobody", "network_id": template["network_id"], "scheme": "internet-facing", "tags": tags},
    )
    try:
        yield
    finally:
        cloud.delete("load_balancers", made["id"])

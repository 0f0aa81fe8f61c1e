"""Helpers for calls of mycloud's API in process."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

from local.mycloud.api import create_app
from local.mycloud.context import Context
from local.mycloud.models.common import State
from local.mycloud.models.compute import MachineRecord

TOKEN = "a-token-of-this-test"

Json = dict[str, Any]


def client(context: Context, token: str = TOKEN) -> TestClient:
    return TestClient(create_app(context), headers={"Authorization": f"Bearer {token}"})


def answered(answer: Any) -> Json:
    assert answer.status_code in (200, 201), answer.text
    return dict(answer.json())


def post(api: TestClient, path: str, body: Json) -> Json:
    return answered(api.post(f"/v1/{path}", json=body))


def get(api: TestClient, path: str, **query: Any) -> Json:
    return answered(api.get(f"/v1/{path}", params=query))


def refused(answer: Any, status: int, code: str) -> Json:
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    return dict(answer.json()["error"])


def network(api: TestClient, name: str = "net") -> Json:
    return post(api, "networks", {"name": name})


def place(api: TestClient) -> Json:
    """A network with a subnet and a cluster, as a machine needs them."""
    net = network(api)
    subnet = post(api, "subnets", {"name": "s", "network_id": net["id"], "zone": "zone-b"})
    cluster = post(api, "clusters", {"name": "c", "network_id": net["id"]})
    return {"network_id": net["id"], "table": net["route_table_id"], "subnet": subnet, "cluster": cluster}


def machine_body(where: Json, name: str = "worker-0", **more: Any) -> Json:
    return {
        "name": name,
        "subnet_id": where["subnet"]["id"],
        "cluster_id": where["cluster"]["id"],
        "type": "m1.small",
        "role": "worker",
        **more,
    }


def set_state(context: Context, id: str, state: State) -> None:
    with context.store.write() as session:
        machine = session.get(MachineRecord, id)
        machine.state = state
        session.save(machine)

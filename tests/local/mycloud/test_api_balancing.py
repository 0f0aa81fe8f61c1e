"""The API's load balancers: for users, and for the data plane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.mycloud.context import Context
from local.mycloud.models.common import State
from local.mycloud.privileged_ports import first_bindable_port
from local.mycloud.status import site_objects
from tests.local.mycloud.api_calls import Json, answered, machine_body, place, post, refused, set_state

pytestmark = pytest.mark.integration


class Api:
    """A client with a network and one machine in it."""

    def __init__(self, context: Context, http: TestClient) -> None:
        self.context = context
        self.http = http
        where = place(http)
        self.network = where["network_id"]
        self.machine = post(http, "machines", machine_body(where))

    def post(self, path: str, body: Json) -> Json:
        return post(self.http, path, body)

    def get(self, path: str) -> Json:
        return answered(self.http.get(f"/v1/{path}"))

    def put(self, path: str, body: Json) -> Json:
        return answered(self.http.put(f"/v1/{path}", json=body))

    def backend(self, port: int = 30080, **more: Any) -> Json:
        return {"machine_id": self.machine["id"], "address": self.machine["private_ips"][0], "port": port, **more}

    def balancer(self, **more: Any) -> Json:
        body: Json = {
            "name": "lb",
            "network_id": self.network,
            "listeners": [{"protocol": "TCP", "port": 8080, "backend_set": "web"}],
            "backend_sets": [{"name": "web", "backends": [self.backend()]}],
            **more,
        }
        return self.post("load_balancers", body)

    def changes(self, since: int = 0) -> Json:
        return answered(self.http.get("/internal/balancer/config", params={"since": since}))

    def report(self, id: str, generation: int, **more: Any) -> None:
        answer = self.http.post("/internal/balancer/reports", json=[{"id": id, "generation": generation, **more}])
        assert answer.status_code == 204, answer.text

    def carry_out(self, **more: Any) -> None:
        """Act as the data plane: take the latest configuration and report it as applied."""
        for config in self.changes()["load_balancers"]:
            self.report(config["id"], config["generation"], **more)

    def state(self, id: str) -> tuple[str, str | None]:
        found = self.get(f"load_balancers/{id}")
        return found["state"], found["state_reason"]


@pytest.fixture
def api(context: Context, api: TestClient) -> Api:
    return Api(context, api)


def test_the_status_shows_the_clusters_of_a_load_balancer_by_its_and_its_listeners_tags(
    api: Api, tmp_path: Path
) -> None:
    shared = {"protocol": "TCP", "port": 8081, "backend_set": "web", "tags": {CLUSTER_TAG: "c-2"}}
    api.balancer(tags={CLUSTER_TAG: "c-1"}, listeners=[shared])
    api.balancer()

    found = site_objects(tmp_path / "mycloud.db")["load_balancers"]

    assert [each["clusters"] for each in found] == [["c-1", "c-2"], []]


def test_a_load_balancer_has_an_address_of_its_own_and_explicit_defaults(api: Api) -> None:
    one, two = api.balancer(), api.balancer()

    assert (one["address"], two["address"]) == ("127.35.0.10", "127.35.0.11")
    assert one["source_ranges"] == []
    defaults: Json = {"max_qps": None, "idle_timeout_seconds": 60, "tags": {}}
    assert one["listeners"] == [{"protocol": "TCP", "port": 8080, "backend_set": "web", **defaults}]
    (backend_set,) = one["backend_sets"]
    assert backend_set == {
        "name": "web",
        "tags": {},
        "scheduler": "round_robin",
        "session_affinity": "NONE",
        "session_affinity_timeout_seconds": 10800,
        "backends": [api.backend(weight=1)],
        "health_check": {
            "protocol": "TCP",
            "port": None,
            "path": "/",
            "interval_seconds": 2,
            "timeout_seconds": 1,
            "healthy_threshold": 2,
            "unhealthy_threshold": 2,
        },
    }


def test_the_backends_of_a_udp_listener_are_not_checked_by_default(api: Api) -> None:
    made = api.balancer(listeners=[{"protocol": "UDP", "port": 8053, "backend_set": "web"}])

    assert made["backend_sets"][0]["health_check"]["protocol"] == "NONE"


def test_a_load_balancer_is_available_or_failed_as_the_data_plane_reports(api: Api) -> None:
    lb = api.balancer()["id"]
    assert api.state(lb) == ("creating", None)

    api.carry_out(failures=["listener TCP 8080: Address already in use"])
    assert api.state(lb) == ("failed", "listener TCP 8080: Address already in use")

    api.carry_out()
    assert api.state(lb) == ("available", None)


def test_a_report_of_an_older_configuration_does_not_make_a_load_balancer_available(api: Api) -> None:
    lb = api.balancer()["id"]
    old = api.changes()["load_balancers"][0]["generation"]
    api.put(f"load_balancers/{lb}/listeners/TCP/8081", {"backend_set": "web"})

    api.report(lb, old)

    assert api.state(lb)[0] == "creating"


def test_a_changed_listener_makes_a_load_balancer_updating_but_changed_backends_do_not(api: Api) -> None:
    lb = api.balancer()["id"]
    api.carry_out()

    api.put(f"load_balancers/{lb}/backend_sets/web", {"backends": []})
    assert api.state(lb)[0] == "available"

    api.put(f"load_balancers/{lb}/listeners/TCP/8081", {"backend_set": "web", "max_qps": 7})
    assert api.state(lb)[0] == "updating"
    api.carry_out()
    assert api.state(lb)[0] == "available"
    assert [each["port"] for each in api.get(f"load_balancers/{lb}")["listeners"]] == [8080, 8081]

    assert api.http.delete(f"/v1/load_balancers/{lb}/listeners/TCP/8080").status_code == 200
    refused(api.http.delete(f"/v1/load_balancers/{lb}/listeners/TCP/8080"), 404, "NotFound")


def test_a_change_that_changes_nothing_is_no_work_for_the_data_plane(api: Api) -> None:
    lb = api.balancer()["id"]
    api.carry_out()
    version = api.changes()["version"]

    api.put(f"load_balancers/{lb}/listeners/TCP/8080", {"backend_set": "web"})

    assert api.changes(version)["load_balancers"] == []
    assert api.state(lb)[0] == "available"


def test_a_backend_set_keeps_its_backends_unless_new_ones_are_given(api: Api) -> None:
    lb = api.balancer()["id"]

    changed = api.put(f"load_balancers/{lb}/backend_sets/web", {"scheduler": "least_connections"})

    (backend_set,) = changed["backend_sets"]
    assert backend_set["scheduler"] == "least_connections"
    assert [backend["port"] for backend in backend_set["backends"]] == [30080]


def test_source_ranges_are_changed_in_place_and_are_work_for_the_data_plane(api: Api) -> None:
    lb = api.balancer(source_ranges=["10.1.0.0/16"])["id"]
    api.carry_out()
    version = api.changes()["version"]

    changed = answered(api.http.patch(f"/v1/load_balancers/{lb}", json={"source_ranges": ["10.2.0.0/16", "fd00::/8"]}))

    assert (changed["source_ranges"], changed["state"]) == (["10.2.0.0/16", "fd00::/8"], "available")
    (config,) = api.changes(version)["load_balancers"]
    assert config["source_ranges"] == ["10.2.0.0/16", "fd00::/8"]


def test_a_backend_set_has_a_session_affinity(api: Api) -> None:
    lb = api.balancer()["id"]
    affinity = {"session_affinity": "CLIENT_IP", "session_affinity_timeout_seconds": 60}

    changed = api.put(f"load_balancers/{lb}/backend_sets/web", affinity)

    assert changed["backend_sets"][0].items() >= affinity.items()


def test_listeners_and_backend_sets_have_tags_that_are_no_work_for_the_data_plane(api: Api) -> None:
    lb = api.balancer()["id"]
    api.carry_out()
    generation = api.changes()["load_balancers"][0]["generation"]

    api.put(f"load_balancers/{lb}/listeners/TCP/8080", {"backend_set": "web", "tags": {"of": "a"}})
    changed = api.put(f"load_balancers/{lb}/backend_sets/web", {"tags": {"of": "b"}})

    assert changed["listeners"][0]["tags"] == {"of": "a"}
    assert changed["backend_sets"][0]["tags"] == {"of": "b"}
    assert changed["state"] == "available"
    assert api.changes()["load_balancers"][0]["generation"] == generation


def test_load_balancers_are_found_by_their_own_tags_or_those_of_a_part(api: Api) -> None:
    listener = {"protocol": "TCP", "port": 8080, "backend_set": "web"}
    own = api.balancer(tags={"owner": "a", "zone": "z"})["id"]
    by_listener = api.balancer(tags={"zone": "z"}, listeners=[{**listener, "tags": {"owner": "a"}}])["id"]
    by_set = api.balancer(backend_sets=[{"name": "web", "tags": {"owner": "a"}}])["id"]
    api.balancer(tags={"owner": "b"})

    def found(query: str) -> list[str]:
        return [item["id"] for item in api.get(f"load_balancers?{query}")["items"]]

    assert found("any_tag=owner=a") == [own, by_listener, by_set]
    assert found("any_tag=owner=a&any_tag=zone=z") == [own, by_listener]
    assert found("tag=owner=a") == [own]

    api.put(f"load_balancers/{by_listener}/listeners/TCP/8080", {"backend_set": "web"})
    assert found("any_tag=owner=a") == [own, by_set]
    assert refused(api.http.get("/v1/load_balancers?any_tag=owner"), 400, "InvalidParameter")["field"] == "any_tag"


def test_a_backend_may_be_an_address_that_a_route_leads_to_its_machine(api: Api) -> None:
    lb = api.balancer()["id"]
    path = f"load_balancers/{lb}/backend_sets/web/backends:batch_register"
    pod = {"machine_id": api.machine["id"], "address": "10.36.1.7", "port": 8080, "weight": 1}
    (refusal,) = api.post(path, {"backends": [pod]})["results"]
    assert refusal["error"]["allowed"] == api.machine["private_ips"][0]

    table = api.get(f"networks/{api.network}")["route_table_id"]
    route = {"destination_cidr": "10.36.1.0/24", "next_hop_machine_id": api.machine["id"]}
    api.post(f"route_tables/{table}/routes:batch_create", {"routes": [route]})

    assert api.post(path, {"backends": [pod]})["results"][0]["error"] is None
    (elsewhere,) = api.post(path, {"backends": [{**pod, "address": "10.36.2.7"}]})["results"]
    assert elsewhere["error"]["allowed"] == f"{api.machine['private_ips'][0]}, 10.36.1.0/24"


def test_only_an_unused_backend_set_can_be_deleted(api: Api) -> None:
    lb = api.balancer()["id"]
    api.put(f"load_balancers/{lb}/backend_sets/spare", {})

    error = refused(api.http.delete(f"/v1/load_balancers/{lb}/backend_sets/web"), 409, "Conflict")
    assert "TCP 8080" in error["message"]
    assert api.http.delete(f"/v1/load_balancers/{lb}/backend_sets/spare").status_code == 200


def test_more_than_forty_backends_in_one_call_are_refused(api: Api) -> None:
    lb = api.balancer()["id"]
    body = {"backends": [api.backend(port) for port in range(1, 42)]}

    answer = api.http.post(f"/v1/load_balancers/{lb}/backend_sets/web/backends:batch_register", json=body)

    assert refused(answer, 400, "InvalidParameter")["field"] == "backends"


def test_a_backend_whose_machine_is_gone_does_not_hinder_other_changes(api: Api) -> None:
    lb = api.balancer()["id"]
    set_state(api.context, api.machine["id"], State.TERMINATED)

    api.put(f"load_balancers/{lb}/listeners/TCP/8081", {"backend_set": "web"})
    answer = api.http.put(f"/v1/load_balancers/{lb}/backend_sets/new", json={"backends": [api.backend()]})

    assert "no machine" in refused(answer, 400, "InvalidParameter")["message"]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"listeners": [{"protocol": "TCP", "port": 80, "backend_set": "web"}]}, "port"),
        ({"listeners": [{"protocol": "TCP", "port": 8080, "backend_set": "nope"}]}, "listeners.0.backend_set"),
        ({"listeners": [{"protocol": "TCP", "port": 8080, "backend_set": "web"}] * 2}, "listeners"),
        # A number that would break a data plane.
        (
            {"listeners": [{"protocol": "TCP", "port": 80, "backend_set": "web", "max_qps": 10**400}]},
            "listeners.0.max_qps",
        ),
        ({"listeners": [{"protocol": "SCTP", "port": 8080, "backend_set": "web"}]}, "listeners.0.protocol"),
        ({"backend_sets": [{"name": "web"}] * 2}, "backend_sets"),
        ({"backend_sets": [{"name": "web", "session_affinity": "COOKIE"}]}, "backend_sets.0.session_affinity"),
        ({"backend_sets": [{"name": "web", "health_check": {"path": "/a b"}}]}, "backend_sets.0.health_check.path"),
        (
            {"backend_sets": [{"name": "web", "health_check": {"path": "/\r\nX: y"}}]},
            "backend_sets.0.health_check.path",
        ),
        ({"source_ranges": ["10.0.0.1/8"]}, "source_ranges.0"),
        ({"name": ""}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"network_id": "net-000000000000"}, "network_id"),
    ],
)
def test_an_invalid_load_balancer_is_refused_by_field_and_not_created(api: Api, more: Json, field: str) -> None:
    good: Json = {
        "name": "lb",
        "network_id": api.network,
        "listeners": [{"protocol": "TCP", "port": 8080, "backend_set": "web"}],
        "backend_sets": [{"name": "web"}],
    }

    error = refused(api.http.post("/v1/load_balancers", json={**good, **more}), 400, "InvalidParameter")

    assert error["field"] == field
    assert api.get("load_balancers")["items"] == []


def test_a_low_port_is_refused_with_the_reason_and_the_allowed_ports(api: Api) -> None:
    lb = api.balancer()["id"]

    answer = api.http.put(f"/v1/load_balancers/{lb}/listeners/TCP/80", json={"backend_set": "web"})

    error = refused(answer, 400, "InvalidParameter")
    assert error["field"] == "port"
    assert "may not bind" in error["message"]
    assert error["allowed"] == "1024-65535"


@pytest.mark.parametrize(
    ("capabilities", "start", "first"), [("0000000000000000", 1024, 1024), ("0000000000000400", 1024, 1), ("0", 0, 1)]
)
def test_the_kernel_decides_which_ports_may_be_bound(tmp_path: Path, capabilities: str, start: int, first: int) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text(f"Name:\tx\nCapInh:\t0000000000000400\nCapEff:\t{capabilities}\n")
    ipv4 = tmp_path / "sys" / "net" / "ipv4"
    ipv4.mkdir(parents=True)
    (ipv4 / "ip_unprivileged_port_start").write_text(f"{start}\n")

    assert first_bindable_port(tmp_path) == first


def test_health_and_counters_are_what_the_data_plane_reported(api: Api) -> None:
    lb = api.balancer()["id"]
    key = {"backend_set": "web", "address": api.backend()["address"], "port": 30080}
    nothing = dict.fromkeys(("connections", "bytes_in", "bytes_out", "rejected_qps", "rejected_source"), 0)
    zero: Json = {"protocol": "TCP", "port": 8080, **nothing}
    assert api.get(f"load_balancers/{lb}/health")["items"] == [{**key, "healthy": None, "checked": True}]
    assert api.get(f"load_balancers/{lb}/counters")["items"] == [zero]

    api.carry_out(health=[{**key, "healthy": True}], counters=[{**zero, "connections": 3}])

    assert api.get(f"load_balancers/{lb}/health")["items"] == [{**key, "healthy": True, "checked": True}]
    assert api.get(f"load_balancers/{lb}/counters")["items"] == [{**zero, "connections": 3}]


def test_an_unchecked_backend_is_neither_healthy_nor_unhealthy(api: Api) -> None:
    lb = api.balancer(listeners=[{"protocol": "UDP", "port": 5353, "backend_set": "web"}])["id"]
    key = {"backend_set": "web", "address": api.backend()["address"], "port": 30080}

    api.carry_out(health=[{**key, "healthy": True}])

    assert api.get(f"load_balancers/{lb}/health")["items"] == [{**key, "healthy": None, "checked": False}]


def test_a_deleted_load_balancer_is_gone_when_the_data_plane_has_closed_it(api: Api) -> None:
    lb = api.balancer()["id"]
    api.carry_out()

    assert api.http.delete(f"/v1/load_balancers/{lb}").json()["state"] == "deleting"
    refused(api.http.put(f"/v1/load_balancers/{lb}/listeners/TCP/1", json={"backend_set": "web"}), 409, "Conflict")
    (config,) = api.changes()["load_balancers"]
    assert config["state"] == "deleting"
    api.report(lb, config["generation"], closed=True)

    refused(api.http.get(f"/v1/load_balancers/{lb}"), 404, "NotFound")


def test_the_data_plane_gets_only_changes_since_its_last_request(api: Api) -> None:
    one, two = api.balancer()["id"], api.balancer()["id"]
    version = api.changes()["version"]
    assert api.changes(version)["load_balancers"] == []

    api.put(f"load_balancers/{two}/listeners/TCP/9090", {"backend_set": "web"})

    assert [each["id"] for each in api.changes(version)["load_balancers"]] == [two]
    assert one not in str(api.changes(version))

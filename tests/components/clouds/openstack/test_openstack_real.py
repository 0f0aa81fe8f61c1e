"""What the program of openstack-prod makes, made in the real Neutron, Octavia and Keystone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cloud_controller.cloud import AccessDenied, InvalidConfiguration
from cloud_controller.clouds.openstack.cloud import OpenStack, connect
from cloud_controller.clouds.openstack.config import parse
from components.clouds.openstack import access
from local.openstack.api import Api
from local.openstack.configs import PASSWORD
from local.waiting import wait_until
from tests.cloud_controller.clouds.openstack.site import Site
from tests.components.clouds.openstack.replay import Replay
from tests.components.clouds.openstack.test_openstack_program import CONTROLLERS, CREDENTIAL, MADE, MANAGER, RULE, STACK
from tests.components.stack_runs import every, runner

pytestmark = pytest.mark.integration


@pytest.fixture
def recording(run_program: Any) -> Any:
    return runner(run_program, MADE)(STACK)


def settle(api: Api, balancer: str) -> None:
    def active() -> bool:
        found = api.get("load-balancer", f"lbaas/loadbalancers/{balancer}")["loadbalancer"]
        assert found["provisioning_status"] != "ERROR"
        return bool(found["provisioning_status"] == "ACTIVE")

    assert wait_until(active, 60)


@pytest.fixture
def default_rules(openstack: Site) -> Iterator[None]:
    """New groups let out to everything, as in every cloud; the site's Neutron has no such rules of its own."""
    admin, path = openstack.peer.admin, "default-security-group-rules"
    rule = {"direction": "egress", "ethertype": "IPv4", "used_in_default_sg": True, "used_in_non_default_sg": True}
    made = admin.post("network", path, {"default_security_group_rule": rule})["default_security_group_rule"]
    yield
    admin.delete("network", f"{path}/{made['id']}")


@pytest.fixture
def made(openstack: Site, recording: Any) -> Replay:
    external, _ = openstack.project.network("public", "203.0.113.0/24", external=True)
    replay = Replay(openstack.project.api, external["id"], settle)
    replay.make(recording)
    return replay


@pytest.mark.usefixtures("made")
def test_the_services_accept_all_that_the_program_declares(openstack: Site) -> None:
    api = openstack.project.api

    [balancer] = api.get("load-balancer", "lbaas/loadbalancers")["loadbalancers"]
    status = api.get("load-balancer", f"lbaas/loadbalancers/{balancer['id']}/status")["statuses"]["loadbalancer"]
    [listener] = status["listeners"]
    assert len(listener["pools"][0]["members"]) == 3


@pytest.mark.usefixtures("default_rules")
def test_security_groups_have_exactly_the_declared_rules(openstack: Site, recording: Any, made: Replay) -> None:
    names = [f"{STACK}-nodes-id", f"{STACK}-control-plane-id"]
    ids = {made.id("secGroup", name): name for name in names}
    found = openstack.project.api.get("network", "security-group-rules")["security_group_rules"]
    rules = [
        (
            ids[rule["security_group_id"]],
            rule["direction"],
            rule["protocol"],
            rule["port_range_min"],
            rule["port_range_max"],
            rule["remote_ip_prefix"] or ids[rule["remote_group_id"]],
        )
        for rule in found
        if rule["security_group_id"] in ids
    ]

    declared = {
        (
            rule["securityGroupId"],
            rule["direction"],
            rule.get("protocol"),
            rule.get("portRangeMin"),
            rule.get("portRangeMax"),
            rule.get("remoteIpPrefix") or rule["remoteGroupId"],
        )
        for rule in every(recording, RULE).values()
    }
    assert set(rules) == declared
    assert len(rules) == len(declared)


# ---------------------------------------------------------------------------------------------- the CCM's credential


def credential(openstack: Site, recording: Any) -> str:
    """The cloud config with the CCM's credential, which Keystone made as the program declares it."""
    inputs = recording.one(CREDENTIAL, f"{STACK}-{MANAGER}").inputs
    wanted = {
        "name": "ccm",
        "roles": [{"name": role} for role in inputs["roles"]],
        "access_rules": inputs["accessRules"],
        "expires_at": (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
    }
    path = f"users/{openstack.project.user_id}/application_credentials"
    found = openstack.project.api.post("identity", path, {"application_credential": wanted})["application_credential"]
    section = {"authUrl": openstack.proxy.auth_url, "routerId": openstack.router}
    known = {"application-credential-id": found["id"], "application-credential-secret": found["secret"]}
    return access.rendered(section, known, STACK)


def test_the_ccms_credential_lets_its_controllers_work(openstack: Site, recording: Any) -> None:
    server = openstack.server("worker")
    cloud = OpenStack(parse(credential(openstack, recording)), timeout=120)

    cloud.check_access(CONTROLLERS)

    assert [each.provider_id for each in cloud.instances.list()] == [f"openstack:///{server}"]
    assert cloud.routes is not None and cloud.routes.list() == []
    assert cloud.load_balancers is not None and list(cloud.load_balancers.read()) == []


def test_the_ccms_credential_allows_nothing_else(openstack: Site, recording: Any) -> None:
    client = connect(parse(credential(openstack, recording)), 120)

    for service, path in (("compute", "flavors"), ("network", "subnetpools"), ("load-balancer", "lbaas/quotas")):
        with pytest.raises(AccessDenied):
            client.get(service, path)


# ----------------------------------------------------------------------------------------------- a dynamic provider


def stack_config(openstack: Site) -> Any:
    section = {"authUrl": openstack.proxy.auth_url, "externalNetworkId": "6f0a1c9e-8a52-4c7b-9e0d-1b2f3a4c5d6e"}
    return {"openstack": json.dumps(section)}


@pytest.fixture
def environment(openstack: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OS_CLOUD", raising=False)
    monkeypatch.setenv("OS_USERNAME", openstack.project.name)
    monkeypatch.setenv("OS_PASSWORD", PASSWORD)
    monkeypatch.setenv("OS_USER_DOMAIN_NAME", "Default")
    monkeypatch.setenv("OS_PROJECT_ID", openstack.project.id)


@pytest.mark.usefixtures("environment")
def test_a_dynamic_provider_finds_the_clusters_router_by_its_network(openstack: Site) -> None:
    router = openstack.router

    found = parse(access.cloud_config(stack_config(openstack), "c-1", openstack.nodes[0]["id"]))

    assert (found.router_id, found.cluster_id) == (router, "c-1")
    assert found.load_balancers is not None
    assert found.load_balancers.networks.floating_network_id == "6f0a1c9e-8a52-4c7b-9e0d-1b2f3a4c5d6e"


@pytest.mark.usefixtures("environment")
def test_a_network_without_a_router_is_an_error_that_names_it(openstack: Site) -> None:
    network = openstack.nodes[0]["id"]

    with pytest.raises(InvalidConfiguration, match=f"network {network}: its routers: none"):
        access.cloud_config(stack_config(openstack), "c-1", network)

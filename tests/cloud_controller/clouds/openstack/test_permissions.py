"""The rights: exactly the requests that each controller's part of the cloud makes, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cloud_controller.cloud import InstanceRef, Route
from cloud_controller.clouds.openstack import octavia
from cloud_controller.clouds.openstack.permissions import SECURITY_GROUPS, access_rules, requests
from local.openstack.proxy import Fault
from tests.cloud_controller.clouds.openstack.site import WITHOUT_EXTENSION, Site

CALL = re.compile(
    r"_client\.(?P<method>get|list|list_by|post|put|delete)\(\s*(?P<service>OCTAVIA|NEUTRON),\s*(?:f?\"(?P<path>[^\"]+)\"|path)"
)
KINDS = {"kind": ("listeners", "loadbalancers", "pools", "healthmonitors")}
"""What stands in a path that is computed."""


def written_in(text: str) -> set[str]:
    """The requests to which calls in this source come."""
    found: set[str] = set()
    for each in CALL.finditer(text):
        method = {"list": "GET", "list_by": "GET"}.get(each["method"], each["method"].upper())
        service = {"OCTAVIA": "load-balancer", "NEUTRON": "network"}[each["service"]]
        path = each["path"] or "floatingips/ID"
        kinds = KINDS["kind"] if "{kind}" in path else ("",)
        found |= {f"{method} {service} {re.sub(r'{[^}]*}', 'ID', path.replace('{kind}', kind))}" for kind in kinds}
    return found


def test_the_rights_for_load_balancers_are_the_requests_in_the_code() -> None:
    sources = [path.read_text() for path in Path(octavia.__file__).parent.glob("*.py")]

    assert {*requests(["service", SECURITY_GROUPS])} == set().union(*map(written_in, sources))


@pytest.mark.integration
def test_the_rights_for_nodes_and_routes_are_the_requests_that_are_made(openstack: Site) -> None:
    cloud = openstack.cloud(router_id=openstack.router)
    seen: set[str] = set()
    server = openstack.server("node0")
    wanted = [Route("10.244.0.0/24", server)]
    cloud.observe_calls(lambda operation, _seconds, _error: seen.add(operation))

    cloud.check_access(["node", "node-lifecycle", "route"])
    cloud.instances.list()
    cloud.instances.describe([InstanceRef("node0", server)])
    assert cloud.routes is not None
    # The pair is overtaken once, so that it is read again.
    openstack.fails("PUT network /v2.0/ports/ID", Fault(412))
    assert cloud.routes.create(wanted) == []
    openstack.proxy.peace()
    assert cloud.routes.delete(wanted) == []
    openstack.proxy.fault = lambda operation: WITHOUT_EXTENSION if "extraroutes" in operation else None
    assert cloud.routes.create(wanted) == []

    assert seen - {"POST identity auth/tokens"} == {*requests(["node", "node-lifecycle", "route"])}


def test_the_rights_for_ports_are_only_for_those_who_have_security_groups_managed() -> None:
    needed = {"GET network security-groups", "PUT network ports/ID"}

    assert needed.isdisjoint(requests(["service"]))
    assert needed <= {*requests(["service", SECURITY_GROUPS])}


def test_access_rules_name_services_methods_and_paths() -> None:
    assert {"service": "network", "method": "PUT", "path": "/**v2.0/ports/*"} in access_rules(["route"])
    assert {each["service"] for each in access_rules(["node"])} == {"compute"}


def test_a_request_of_several_controllers_has_one_access_rule() -> None:
    rules = access_rules(["node", "route", "service", SECURITY_GROUPS])

    assert len({tuple(rule.items()) for rule in rules}) == len(rules)

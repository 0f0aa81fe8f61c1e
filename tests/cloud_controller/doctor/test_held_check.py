"""Changes that wait for a confirmation or an acknowledgement are found."""

from __future__ import annotations

from cloud_controller.controller_names import NAMES
from cloud_controller.controllers.service.address_changes import AddressChanges
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.doctor.checks import held
from cloud_controller.doctor.findings import Severity
from cloud_controller.kube import SERVICES
from cloud_controller.load_balancers.sharing import Sharing
from cloud_controller.planning import PlanSettings
from tests.cloud_controller.clouds.mycloud.services import SCHEME, named
from tests.cloud_controller.doctor.conftest import ServiceWorld
from tests.cloud_controller.doctor.looks import World, not_ready
from tests.cloud_controller.load_balancing import port


def test_a_deletion_that_waits_for_a_confirmation_is_found_with_its_command(world: ServiceWorld) -> None:
    world.serve()
    world.api.objects(SERVICES).clear()

    (finding,) = world.findings(held.CHECK)
    assert finding.subject == "service/default/web"
    assert finding.what.startswith("a change waits for a confirmation: delete load balancer")
    assert finding.evidence[0] == "its Service no longer exists, and no deletion was seen that takes it along"
    assert "cloud-controller confirm " in finding.remedy
    assert "create the Service again, move its clients" in finding.remedy
    assert finding.severity is Severity.WARNING


def test_actions_that_are_held_together_are_one_finding(world: ServiceWorld) -> None:
    world.settings = PlanSettings(service=ServiceOptions(sharing=Sharing.ANY))
    world.serve()
    world.serve(named(id=world.load_balancer()["id"]), name="guest", ports=[port(8081)])
    world.api.objects(SERVICES).pop("default/guest")

    (finding,) = world.findings(held.CHECK)
    assert finding.subject == "service/default/guest"
    assert "with it: service/default/guest" in finding.evidence[-1]


def test_a_change_of_address_that_waits_is_found_with_its_annotation(world: ServiceWorld) -> None:
    world.settings = PlanSettings(service=ServiceOptions(address_changes=AddressChanges.ACKNOWLEDGE))
    world.serve()
    internal = {SCHEME: "internal"}
    world.api.change(SERVICES, "default/web", lambda service: service["metadata"].update(annotations=internal))

    (finding,) = world.findings(held.CHECK)
    assert "acknowledgement" in finding.what
    assert "cloud-controller/acknowledge-address-change" in finding.remedy


def test_a_node_of_another_cluster_is_held(nodes: World) -> None:
    nodes.cloud.machines.clear()
    nodes.change("a", not_ready)

    subjects = [each.subject for each in nodes.findings(held.CHECK)]
    assert "node/a" in subjects


def test_every_controller_that_can_hold_an_action_has_its_remedy() -> None:
    assert {*held._OTHERWISE} == {*NAMES} - {"node"}

"""How nodes name their machines: every form that kubelets of AWS have, and none of another cloud."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InstanceRef, InvalidConfiguration
from cloud_controller.clouds.aws.provider_ids import Identity, identity, instance_id, provider_id

ID = "i-0123456789abcdef0"


@pytest.mark.parametrize(
    "given", [f"aws:///eu-central-1a/{ID}", f"aws:////{ID}", f"aws:///{ID}", ID, "aws:///eu-central-1a/i-01234567"]
)
def test_a_provider_id_of_any_form_leads_to_the_instance(given: str) -> None:
    found = identity(InstanceRef("n", given))

    assert found == Identity(instance_id=given.rpartition("/")[2])
    assert instance_id(given) == given.rpartition("/")[2]


def test_a_task_of_fargate_is_no_instance() -> None:
    given = "aws:///eu-central-1a/0a1b2c-d/fargate-ip-10-0-0-1.eu-central-1.compute.internal"
    shorter = "aws:///eu-central-1a/fargate-ip-10-0-0-1.eu-central-1.compute.internal"

    for each in (given, shorter):
        assert identity(InstanceRef("n", each)) == Identity(fargate="fargate-ip-10-0-0-1.eu-central-1.compute.internal")
        assert instance_id(each) is None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (f"{ID}.eu-central-1.compute.internal", Identity(instance_id=ID)),
        (ID, Identity(instance_id=ID)),
        ("ip-10-0-0-1.eu-central-1.compute.internal", None),
        ("i-am-a-name", None),
    ],
)
def test_a_name_that_is_made_of_the_id_says_it(name: str, found: Identity | None) -> None:
    assert identity(InstanceRef(name)) == found


@pytest.mark.parametrize("given", ["mycloud://r/z/i-1", "aws:///z/vol-1", "eks-hybrid:///r/c/mi-1", "aws://i-1"])
def test_another_clouds_provider_id_is_an_error_at_the_node(given: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"node n: spec\.providerID: .* is not an AWS provider ID"):
        identity(InstanceRef("n", given))


@pytest.mark.parametrize(
    "zone", ["us-west-2a", "us-west-2-lax-1a", "us-west-2-wl1-las-wlz-1", "", "rack-1"], ids=lambda zone: zone or "none"
)
def test_a_machine_in_the_region_or_in_a_zone_that_tells_none_is_asked_for(zone: str) -> None:
    assert identity(InstanceRef("n", f"aws:///{zone}/{ID}"), "us-west-2") == Identity(instance_id=ID)


@pytest.mark.parametrize("zone", ["us-west-1a", "us-west-1-lax-1a", "us-gov-west-1a"])
def test_a_provider_id_of_another_region_is_an_error_at_the_node(zone: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"node n: spec\.providerID: .* is not in region us-west-2"):
        identity(InstanceRef("n", f"aws:///{zone}/{ID}"), "us-west-2")


def test_a_machines_provider_id_has_its_zone() -> None:
    assert provider_id("eu-central-1a", ID) == f"aws:///eu-central-1a/{ID}"

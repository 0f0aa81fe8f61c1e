"""What every cloud offers to the components, and how it is found."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pulumi
import pytest

from cloud_controller.clouds import descriptor
from cloud_controller.load_balancers.catalogue import Catalogue
from components import clouds
from components.clouds.interface import CloudAdapter
from components.stack_model import CloudSection

# The libraries that take long to import: a dynamic provider needs none of them to find its cloud.
HEAVY = ("boto3", "pulumi_alicloud", "pulumi_aws", "pulumi_kubernetes", "pulumi_openstack", "pydantic")


@pytest.mark.parametrize("name", clouds.names())
def test_a_cloud_offers_its_resources_and_its_section_of_the_stack_config(name: str) -> None:
    cloud = clouds.descriptor(name)

    assert cloud.name == descriptor(name).name == name
    assert isinstance(cloud.adapter(), CloudAdapter)
    assert issubclass(cloud.section(), CloudSection)


@pytest.mark.parametrize("name", clouds.names())
def test_the_typed_settings_of_a_load_balancer_are_those_of_the_catalogue(name: str) -> None:
    catalogue = descriptor(name).catalogue
    offered = {entry.argument: entry for entry in catalogue if not entry.ignored}

    # As texts: what the SDK calls Input has a forward reference that only its own module resolves.
    args: Any = clouds.descriptor(name).load_balancer_args
    annotations = {argument: hint.__forward_arg__ for argument, hint in args.__annotations__.items()}

    assert set(annotations) == set(offered)
    for argument, entry in offered.items():
        allowed = ", ".join(f'"{value}"' for value in _allowed(catalogue, argument))
        named = "Sequence[str]" if entry.type is tuple else entry.type.__name__
        plain = f"Literal[{allowed}]" if allowed else named
        given = f"Mapping[str, pulumi.Input[{plain}]]" if entry.suffix else f"pulumi.Input[{plain}]"
        assert annotations[argument].replace("'", '"') == f"NotRequired[{given}]"


def _allowed(catalogue: Catalogue, argument: str) -> list[str]:
    """The words that any kind of load balancer allows; none if one allows other texts."""
    kinds = [kind.by_argument[argument] for kind in catalogue.kinds or (catalogue,) if argument in kind.by_argument]
    entries = [entry for entry in kinds if not entry.ignored]
    if not all(entry.allowed for entry in entries):
        return []
    return list(dict.fromkeys(word for entry in entries for word in entry.allowed))


def test_a_cloud_without_components_is_refused_with_those_that_have_some() -> None:
    with pytest.raises(pulumi.InputPropertyError, match="'nimbus' has no components; allowed: alicloud, aws, mycloud"):
        clouds.descriptor("nimbus")


@pytest.mark.integration
def test_a_dynamic_provider_finds_its_cloud_without_importing_its_sdk() -> None:
    program = (
        "import sys, components.cloud_controller, components.destroy_guard, components.clouds as c;"
        f"c.descriptors(); print(*(set({HEAVY}) & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == ""

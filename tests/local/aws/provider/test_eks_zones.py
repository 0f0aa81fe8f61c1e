"""A change of a stack's zones or VPC, which EKS refuses and so does the preview."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest

from components.cluster import Cluster
from local.aws.provider.api import Api
from local.aws.provider.recorded import recorder

pytestmark = [pytest.mark.cli, pytest.mark.nightly]

AB, ABC = ["eu-central-1a", "eu-central-1b"], ["eu-central-1a", "eu-central-1b", "eu-central-1c"]


@pytest.fixture
def recorded(stack: Any) -> Any:
    """A stack whose clouds are all recorded."""
    stack.factories |= {"aws": recorder}
    stack.configure({"aws:region": "eu-central-1"})
    return stack


def cluster(zones: list[str], **settings: Any) -> Callable[[], None]:
    """A program with a cluster in these zones."""
    given: Any = {"control_plane": "eks", "nodes": "eks", "kubernetes_version": "1.36", **settings}

    def declare() -> None:
        Cluster("main", {"cloud": "aws", "zones": zones, "settings": given})

    return declare


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        pytest.param(cluster(ABC), "10.0.0.0/16 eu-central-1a eu-central-1b eu-central-1c", id="a zone comes"),
        pytest.param(cluster([*AB[:1], ABC[2]]), "10.0.0.0/16 eu-central-1a eu-central-1c", id="another zone"),
        pytest.param(cluster(AB, vpc_cidr="10.9.0.0/16"), "10.9.0.0/16 eu-central-1a", id="another VPC"),
    ],
)
def test_new_zones_or_another_vpc_are_refused_in_the_preview_and_before_the_update(
    changed: Callable[[], None], shown: str, recorded: Any
) -> None:
    assert recorded.up(cluster(AB)).ok

    outcomes = [recorded.preview(changed), recorded.up(changed)]

    for outcome in outcomes:
        error = outcome.errors[0]
        assert not outcome.ok and "has 10.0.0.0/16 eu-central-1a eu-central-1b" in error and shown in error
        assert "or make a new cluster with another name" in error


def test_removing_a_zone_is_refused(recorded: Any) -> None:
    assert recorded.up(cluster(ABC)).ok

    assert "or make a new cluster with another name" in recorded.preview(cluster(AB)).errors[0]


def test_any_other_change_of_the_cluster_is_allowed(recorded: Any) -> None:
    recorded.up(cluster(AB))

    changed = recorded.up(cluster(AB, api_sources=["198.51.100.0/24"]))

    assert changed.ok


def test_another_subnet_of_the_same_zone_is_an_update_in_place(led: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`led`: on moto, like a user who swaps a subnet in another program."""
    sent: list[Any] = []
    call = Api.call

    def listening(api: Api, service: str, operation: str, **params: Any) -> dict[str, Any]:
        if operation == "update_cluster_config":
            sent.append(params["resourcesVpcConfig"])
        return call(api, service, operation, **params)

    def swapping(index: int) -> Callable[[], None]:
        def declare() -> None:
            vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16")
            kept, swapped = (
                aws.ec2.Subnet(name, vpc_id=vpc.id, cidr_block=cidr, availability_zone=zone)
                for name, cidr, zone in (("b", "10.0.99.0/24", AB[1]), (f"a{index}", f"10.0.{index}.0/24", AB[0]))
            )
            config: Any = {"subnet_ids": [kept.id, swapped.id]}
            aws.eks.Cluster("c", name="c", role_arn="arn:aws:iam::123456789012:role/eks", vpc_config=config)

        return declare

    led.up(swapping(1))
    before = led.resources()["c"].id
    monkeypatch.setattr(Api, "call", listening)

    outcome = led.up(swapping(2))

    resources = led.resources()
    assert outcome.ok and resources["c"].id == before
    assert sent == [{"subnetIds": [resources["b"].id, resources["a2"].id]}]


def test_a_cluster_without_the_zones_tag_is_not_checked(recorded: Any) -> None:
    def untagged(program: Callable[[], None]) -> Callable[[], None]:
        def declare() -> None:
            def without(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
                if args.type_ != "aws:eks/cluster:Cluster":
                    return None
                return pulumi.ResourceTransformResult({**args.props, "tags": {}}, args.opts)

            pulumi.runtime.register_resource_transform(without)
            program()

        return declare

    assert recorded.up(untagged(cluster(AB))).ok

    assert recorded.preview(cluster(ABC)).ok

"""Who may have parts on a load balancer that an annotation names."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancers.model import (
    PRESERVED_TAG,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.sharing import SHARED_WITH_TAG, Sharing, require_permission

WEB = Owner("c-1", "uid-web", "shop", "web")
SAME_NAMESPACE = Owner("c-1", "uid-api", "shop", "api")
OTHER_NAMESPACE = Owner("c-1", "uid-x", "bank", "web")
OTHER_CLUSTER = Owner("c-2", "uid-x", "shop", "web")


def tagged(**tags: str) -> dict[str, str]:
    names = {"shared": SHARED_WITH_TAG, "preserved": PRESERVED_TAG}
    return {names[key]: text for key, text in tags.items()}


def ask(tags: dict[str, str], sharing: Sharing = Sharing.TAGGED) -> None:
    lb = ObservedLoadBalancer("lb-1", LoadBalancerState.READY, LoadBalancerModel("edge", tags=tags))
    require_permission(lb, WEB, sharing, "annotation example.com/id")


@pytest.mark.parametrize(
    "tags",
    [
        SAME_NAMESPACE.tags,
        tagged(shared="c-1/shop"),
        tagged(shared="c-2/bank  c-1/shop"),
        tagged(shared="any"),
        OTHER_NAMESPACE.tags | tagged(shared="c-1/shop"),
        OTHER_CLUSTER.tags | tagged(shared="any"),
        tagged(preserved="c-1/shop/web"),
    ],
)
def test_a_service_may_use_what_is_of_its_namespace_or_shared_with_it_or_was_its_own(tags: dict[str, str]) -> None:
    ask(tags)


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"team": "edge"},
        OTHER_NAMESPACE.tags,
        OTHER_CLUSTER.tags,
        OTHER_CLUSTER.tags | tagged(shared="c-2/shop"),
        Owner("c-1", "uid-x", "", "").tags,
        tagged(shared=""),
        tagged(shared="c-1"),
        tagged(shared="shop"),
        tagged(shared="c-1/shop2 xc-1/shop c-1/shop/web"),
        tagged(shared="many"),
        tagged(preserved="c-1/shop/web2"),
        tagged(preserved="c-2/shop/web"),
        OTHER_NAMESPACE.tags | tagged(preserved="c-1/shop/web"),
    ],
)
def test_a_service_may_not_use_load_balancers_of_other_namespaces(tags: dict[str, str]) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        ask(tags)

    assert refused.value.field == "annotation example.com/id"
    assert "lb-1" in refused.value.why
    assert f"{SHARED_WITH_TAG}=c-1/shop" in str(refused.value.allowed)
    ask(tags, Sharing.ANY)


def test_with_off_no_annotation_names_a_load_balancer() -> None:
    with pytest.raises(InvalidConfiguration, match="--shared-load-balancers=off"):
        ask(tagged(shared="any"), Sharing.OFF)

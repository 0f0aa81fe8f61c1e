"""Who may have parts on a load balancer that an annotation names."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancers.model import (
    PRESERVED_TAG,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.sharing import SHARED_WITH_TAG, Sharing, require_permission, require_share

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


# ---------------------------------------------------------------------------------------------------------- the share


def listeners(owner: Owner, *numbers: int) -> tuple[Listener, ...]:
    return tuple(Listener("TCP", number, f"tcp-{number}", {}, owner.tags) for number in numbers)


def takes(*numbers: int, tags: dict[str, str], present: tuple[Listener, ...] = (), share: int = 2) -> None:
    """WEB asks for these ports of a load balancer with these tags."""
    lb = ObservedLoadBalancer("lb-1", LoadBalancerState.READY, LoadBalancerModel("edge", {}, present, tags=tags))
    require_share(LoadBalancerModel("web", {}, listeners(WEB, *numbers)), lb, WEB, share)


FOR_ALL = OTHER_NAMESPACE.tags | tagged(shared="any")
FULL = (*listeners(SAME_NAMESPACE, 1, 2), *listeners(WEB, 3, 4))


@pytest.mark.parametrize(
    ("numbers", "present"),
    [
        ((1, 2), ()),
        ((1, 2), (*listeners(OTHER_NAMESPACE, 3, 4, 5), *listeners(OTHER_CLUSTER, 6, 7))),
        ((2,), listeners(SAME_NAMESPACE, 1)),
        ((3, 4), FULL),
        ((3,), FULL),
        ((3, 5), FULL),
    ],
)
def test_a_namespace_gets_its_share_and_keeps_what_it_has(
    numbers: tuple[int, ...], present: tuple[Listener, ...]
) -> None:
    takes(*numbers, tags=FOR_ALL, present=present)


@pytest.mark.parametrize(
    ("numbers", "present", "total"),
    [
        ((1, 2, 3), (), 3),
        ((2, 3), listeners(SAME_NAMESPACE, 1), 3),
        ((3, 4, 5), FULL, 5),
        ((3, 4, 5), listeners(WEB, 3, 4), 3),
    ],
)
def test_new_listeners_beyond_a_namespaces_share_are_refused(
    numbers: tuple[int, ...], present: tuple[Listener, ...], total: int
) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        takes(*numbers, tags=FOR_ALL, present=present)

    assert refused.value.field == "spec.ports"
    assert f"namespace c-1/shop would have {total} listeners on load balancer lb-1" in refused.value.why
    assert "at most 2 for each namespace (--shared-listeners-per-namespace)" in str(refused.value.allowed)


@pytest.mark.parametrize("tags", [SAME_NAMESPACE.tags, tagged(shared="any c-1/shop"), tagged(preserved="c-1/shop/web")])
def test_what_is_a_namespaces_own_or_shared_with_it_by_name_has_no_share(tags: dict[str, str]) -> None:
    takes(*range(1, 9), tags=tags)


def test_a_share_of_0_is_no_limit() -> None:
    takes(*range(1, 9), tags=FOR_ALL, share=0)

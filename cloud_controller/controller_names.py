"""Which controllers there are, and which of them a `--controllers` list selects."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cloud_controller.cloud import Cloud, InvalidConfiguration

NAMES = ("node", "node-lifecycle", "service", "route", "volume")
"""Every controller, in the order in which they start."""

ALIASES = {
    "cloud-node": "node",
    "cloud-node-controller": "node",
    "cloud-node-lifecycle": "node-lifecycle",
    "cloud-node-lifecycle-controller": "node-lifecycle",
    "service-lb-controller": "service",
    "cloud-service": "service",
    "cloud-route": "route",
    "node-route-controller": "route",
    "cloud-volume": "volume",
    # Volumes get the labels that this controller used to set.
    "pvlabel": "volume",
    "persistent-volume-label-controller": "volume",
}
"""What upstream's cloud controller manager calls them, or used to."""


def canonical(controller: str) -> str:
    """The controller's name here, for that or for an alias. Raises `InvalidConfiguration`."""
    name = ALIASES.get(controller, controller)
    if name not in NAMES:
        raise InvalidConfiguration("controllers", f"{controller!r} is not a controller", ", ".join(NAMES))
    return name


def controllers(given: Sequence[str], not_offered: Collection[str] = ()) -> tuple[str, ...]:
    """The controllers that a `--controllers` list selects: names or aliases, `*` for all, `-NAME` to exclude one.

    `*` leaves out those in `not_offered`, as upstream does. Raises `InvalidConfiguration` for an unknown name, for one
    in `not_offered`, and if nothing is left.
    """
    chosen: set[str] = set()
    for item in filter(None, (item.strip() for item in given)):
        if item == "*":
            chosen.update(name for name in NAMES if name not in not_offered)
        elif not item.startswith("-"):
            chosen.add(canonical(item))
    for item in (item.strip() for item in given):
        if item.startswith("-"):
            # As upstream: `-route` excludes from what `*` or names selected; alone it selects nothing.
            chosen.discard(canonical(item[1:]))
    for name in sorted(chosen & {*not_offered}):
        raise InvalidConfiguration(
            "controllers", f"the cloud does not support controller {name}", f"'*', or a list without {name}"
        )
    if not chosen:
        raise InvalidConfiguration("controllers", "selects no controller", f"*, -NAME, {', '.join(NAMES)}")
    return tuple(name for name in NAMES if name in chosen)


def not_offered(cloud: Cloud) -> frozenset[str]:
    """The controllers for which this cloud has no work, for example because its networks have no route tables."""
    offers = {"route": cloud.routes, "service": cloud.load_balancers, "volume": cloud.volumes}
    return frozenset(name for name, offer in offers.items() if offer is None)

"""Defects of a cloud's machines, routes and volumes. What they share is in `defects`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import AccessDenied, CloudError, InvalidConfiguration
from tests.contract.defects import Plant, methods


def machines_gone_after(*errors: type[CloudError]) -> Plant:
    """A machine that cannot be described is taken for gone."""

    def plant(cloud: Any) -> None:
        describe = cloud.instances.describe

        def guessing(refs: Any) -> Any:
            try:
                return describe(refs)
            except errors:
                return dict.fromkeys(refs)

        cloud.instances.describe = guessing

    return plant


def no_machines_listed(cloud: Any) -> None:
    cloud.instances.list = list


def foreign_machines_listed(cloud: Any) -> None:
    listed = cloud._client.list

    def untagged(collection: str, **more: Any) -> Any:
        return listed(collection, **{**more, "tags": {}} if collection == "machines" else more)

    cloud._client.list = untagged


one_call_for_each_machine = methods(
    "instances.describe", lambda describe, refs: {ref: describe([ref])[ref] for ref in refs}
)
machines_without_zone = methods(
    "instances.describe",
    lambda describe, refs: {ref: each and replace(each, zone="") for ref, each in describe(refs).items()},
)


names_compared_exactly = methods(
    "instances.describe",
    lambda describe, refs: {
        ref: each if each is None or ref.provider_id or ref.node_name == each.name else None
        for ref, each in describe(refs).items()
    },
)


def machines_listed_before_they_are_described(cloud: Any) -> None:
    methods("instances.describe", lambda describe, refs: (cloud.instances.list(), describe(refs))[1])(cloud)


def failures(alter: Callable[[Any], Any]) -> Plant:
    """`alter(failures)` stands in for those of routes that are created or deleted."""

    def plant(cloud: Any) -> None:
        for name in ("create", "delete"):
            methods(f"routes.{name}", lambda change, routes: alter([*change(routes)]))(cloud)

    return plant


def _raise_first(found: Any) -> Any:
    for each in found:
        raise each.error
    return found


route_failures_dropped = failures(lambda _: [])
route_failures_untyped = failures(lambda found: [replace(each, error=CloudError(str(each.error))) for each in found])
route_failures_raised = failures(_raise_first)
refused_routes_dropped = failures(lambda found: [each for each in found if not isinstance(each.error, AccessDenied)])


def one_refused_route_refuses_all(cloud: Any) -> None:
    def all_or_nothing(create: Any, routes: Any) -> Any:
        failures = create(routes)
        return [replace(failures[0], route=route) for route in routes] if failures else []

    methods("routes.create", all_or_nothing)(cloud)


def machines_opened_after_their_routes(cloud: Any) -> None:
    check, create = cloud.routes._check, cloud.routes.create
    turn_off = check.turn_off

    def routes_first(routes: Any) -> Any:
        check.turn_off = lambda _: {}
        failures = create(routes)
        turn_off({route.target_instance for route in routes})
        return failures

    cloud.routes.create = routes_first


def machines_not_closed(cloud: Any) -> None:
    pair = cloud.routes._pair
    cloud.routes._pair = lambda wanted, add: pair(wanted, add=True) if add else {}


def unowned_routes_deleted(cloud: Any) -> None:
    delete, listed = cloud.routes.delete, cloud.routes.list
    cloud.routes.delete = lambda routes: delete([*routes, *listed()])


def routes_read(**fields: Any) -> Plant:
    """Every route is read with these fields."""
    return methods("routes.list", lambda listed: [replace(route, **fields) for route in listed()])


machines_of_routes_gone = routes_read(target_instance="", blackhole=True)
all_routes_owned = routes_read(owned=True)
provider_ids_of_others_accepted = methods(
    "volumes.attach", lambda attach, of, machine: attach(of, f"mycloud://local/zone/{machine.rpartition('/')[2]}")
)


def volumes_not_resized_again(cloud: Any) -> None:
    def resize(real: Any, id: str, size_gib: int) -> Any:
        if cloud.volumes.list([id])[0].size_gib == size_gib:
            raise InvalidConfiguration("size", "the volume has it")
        return real(id, size_gib)

    methods("volumes.resize", resize)(cloud)

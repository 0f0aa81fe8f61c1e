"""The pod routes in the route tables of the cluster's network. Routes have no tags; the plan decides which are the
cluster's.

The cloud changes a table in the background and refuses a change while another one is under way, so calls come one after
the other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

from cloud_controller.cloud import (
    AccessDenied,
    CloudError,
    Conflict,
    InvalidConfiguration,
    NotFound,
    Route,
    RouteFailure,
    Unavailable,
)
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.alicloud.config import Config
from cloud_controller.clouds.alicloud.errors import of_code
from cloud_controller.clouds.alicloud.instances import EcsInstances
from cloud_controller.clouds.alicloud.source_dest_check import SourceDestCheck
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls, batches

BATCH = 50
"""The most routes in one call."""
_PAGE = 100
_QUOTA = {"ProductCode": "vpc", "QuotaActionCode": "vpc_quota_route_entrys_num"}

_log = logging.getLogger(__name__)

Entry = dict[str, Any]
Failures = dict[Route, CloudError]


class VpcRoutes:
    """The tables in the cloud config, otherwise the only one of the cluster's network."""

    def __init__(self, client: Client, config: Config, instances: EcsInstances, concurrently: ConcurrentCalls) -> None:
        self._client = client
        self._config = config
        self._instances = instances
        self._check = SourceDestCheck(client, instances, concurrently)
        self._changing = threading.Lock()
        self._known_tables: tuple[str, ...] = config.route_table_ids
        self._hops: Mapping[str, Mapping[str, str]] = {}
        """The machine that is gone to which each destination leads, by table, at the last read."""

    def list(self) -> Sequence[Route]:
        """Every custom route of the tables, including others', each destination once."""
        tables = {table: {route.destination_cidr: route for route in self._read(table)} for table in self._tables()}
        merged = [*_merged([*tables.values()])]
        gone = self._instances.missing({route.target_instance for route in merged if route.owned is None} - {""})
        # Nothing else: where another table leads the same destination elsewhere, that route is not the cluster's.
        self._hops = {
            table: {cidr: route.target_instance for cidr, route in routes.items() if route.target_instance in gone}
            for table, routes in tables.items()
        }
        return [_without_target(route) if route.target_instance in gone else route for route in merged]

    def quota(self) -> int | None:
        """The most custom routes in one table by the account's quota; None if unknown.

        A guess would block routes that fit.
        """
        try:
            return int(self._client.call("quotas", "GetProductQuota", _QUOTA)["Quota"]["TotalQuota"])
        except (AccessDenied, InvalidConfiguration, NotFound, Unavailable) as error:
            # No permission, no network route to this service, or none in this region.
            _log.warning("could not read the route quota error=%r", str(error))
            return None

    def create(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Create them in every table, and turn off their machines' source/destination checks.

        An existing route to the same machine is a success.
        """
        try:
            tables = self._tables()
            unopened = self._check.turn_off({route.target_instance for route in routes})
        except CloudError as error:
            return [RouteFailure(route, error) for route in routes]
        failures: Failures = {
            route: unopened[route.target_instance] for route in routes if route.target_instance in unopened
        }
        ready = [route for route in routes if route not in failures]
        for table in tables:
            refused = self._change("CreateRouteEntries", table, ready, _creation)
            if any(isinstance(error, Conflict | Unavailable) for error in refused.values()):
                refused = self._still(table, refused, present=False)
            failures |= refused
        return [RouteFailure(route, error) for route, error in failures.items()]

    def delete(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Delete them from every table; a missing route is a success."""
        try:
            tables = self._tables()
            if not self._hops and not all(route.target_instance for route in routes):
                self.list()  # Which machines the routes lead to, that are gone.
        except CloudError as error:
            return [RouteFailure(route, error) for route in routes]
        failures: Failures = {}
        for table in tables:
            refused = self._change("DeleteRouteEntries", table, routes, self._deletion)
            if any(isinstance(error, NotFound | Unavailable) for error in refused.values()):
                refused = self._still(table, refused, present=True)
            failures |= refused
        return [RouteFailure(route, error) for route, error in failures.items()]

    def _tables(self) -> tuple[str, ...]:
        """The tables' IDs. Raises InvalidConfiguration if the network has several and the cloud config names none."""
        if not self._known_tables:
            asked = {"VpcId": self._config.vpc_id, "PageSize": BATCH}
            path = "RouterTableList.RouterTableListType"
            found = [
                str(each["RouteTableId"]) for each in self._client.pages("vpc", "DescribeRouteTableList", asked, path)
            ]
            if len(found) != 1:
                has = f"{self._config.vpc_id} has {'no route table' if not found else ', '.join(sorted(found))}"
                field = "cloud config: Global: routeTableIDs"
                raise InvalidConfiguration(field, f"missing, and {has}", "the IDs of the tables for pod routes")
            self._known_tables = (found[0],)
        return self._known_tables

    def _read(self, table: str) -> Iterator[Route]:
        asked = {"RouteTableId": table, "RouteEntryType": "Custom", "MaxResult": _PAGE}
        try:
            for entry in self._client.pages("vpc", "DescribeRouteEntryList", asked, "RouteEntrys.RouteEntry"):
                if entry.get("Status") != "Deleting":
                    yield _route(entry)
        except NotFound as error:
            self._known_tables = self._config.route_table_ids
            field = "cloud config: Global: routeTableIDs"
            raise InvalidConfiguration(field, f"route table {table} does not exist") from error

    def _change(
        self, action: str, table: str, routes: Sequence[Route], entry: Callable[[str, Route], Entry | None]
    ) -> Failures:
        """Call `action` for the entries of these routes, in batches; returns the refused ones."""
        failures: Failures = {}
        entries = {route: found for route in routes if (found := entry(table, route)) is not None}
        for some in batches([*entries], BATCH):
            try:
                with self._changing:
                    answer = self._client.call(
                        "vpc", action, {"RouteEntries": [entries[route] for route in some]}, repeatable=True
                    )
            except CloudError as error:
                failures |= dict.fromkeys(some, error)
                continue
            refused = {_canonical(each["DstCidrBlock"]): each for each in answer.get("FailedRouteEntries") or ()}
            for route in some:
                if each := refused.get(route.destination_cidr):
                    what = f"vpc {action} {table} {route.destination_cidr}"
                    failures[route] = of_code(str(each.get("FailedCode")), str(each.get("FailedMessage")), what)
        return failures

    def _still(self, table: str, failures: Failures, *, present: bool) -> Failures:
        """The failures whose route is (`present`) or is not in the table after all."""
        try:
            there = {(route.destination_cidr, route.target_instance) for route in self._read(table)}
        except CloudError as error:
            _log.warning("could not read the route table error=%r", str(error))
            return failures
        return {
            route: error
            for route, error in failures.items()
            if ((route.destination_cidr, self._hop(table, route)) in there) is present
        }

    def _hop(self, table: str, route: Route) -> str:
        return route.target_instance or self._hops.get(table, {}).get(route.destination_cidr, "")

    def _deletion(self, table: str, route: Route) -> Entry | None:
        """The entry to delete; None if the route has no target, and the table led to no machine that is gone."""
        hop = self._hop(table, route)
        return {"RouteTableId": table, "DstCidrBlock": route.destination_cidr, "NextHop": hop} if hop else None


def _creation(table: str, route: Route) -> Entry:
    entry: Entry = {
        "RouteTableId": table,
        "DstCidrBlock": route.destination_cidr,
        "NextHop": route.target_instance,
        "NextHopType": "Instance",
    }
    return entry | ({"IpVersion": 6} if ":" in route.destination_cidr else {})


def _route(entry: Mapping[str, Any]) -> Route:
    hops: Sequence[Mapping[str, Any]] = (entry.get("NextHops") or {}).get("NextHop") or ()
    to_machine = len(hops) == 1 and hops[0].get("NextHopType") == "Instance"
    return Route(
        destination_cidr=_canonical(entry["DestinationCidrBlock"]),
        target_instance=hops[0].get("NextHopId") or "" if hops else "",
        # Routes to a gateway, or to several hops, were never pod routes.
        owned=None if to_machine else False,
    )


def _canonical(destination: str) -> str:
    """As the controllers write it: IPv6 has several spellings. A prefix list stays as it is."""
    try:
        return str(ip_network(destination, strict=False))
    except ValueError:
        return destination


def _merged(tables: Sequence[Mapping[str, Route]]) -> Iterator[Route]:
    """Each destination once. Where a table lacks it, or leads elsewhere, the route is partial."""
    for cidr in sorted({cidr for table in tables for cidr in table}):
        found = [table[cidr] for table in tables if cidr in table]
        same = len(found) == len(tables) and len({*found}) == 1
        yield found[0] if same else replace(found[0], partial=True)


def _without_target(route: Route) -> Route:
    return replace(route, target_instance="", blackhole=True)

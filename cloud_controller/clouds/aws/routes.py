"""The pod routes in a route table of the VPC. Routes have no tags; the plan decides which are the cluster's."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cloud_controller.cloud import (
    AccessDenied,
    CloudError,
    InvalidConfiguration,
    NotFound,
    Route,
    RouteFailure,
    Unavailable,
)
from cloud_controller.clouds.aws.client import Api, error_code
from cloud_controller.clouds.aws.instances import AwsInstances
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls

_QUOTA_SERVICE, _QUOTA_CODE = "vpc", "L-93826ACB"
"""Service Quotas' codes of the quota of routes in a route table."""

_TARGETS = (
    "InstanceId",
    "GatewayId",
    "NatGatewayId",
    "EgressOnlyInternetGatewayId",
    "TransitGatewayId",
    "LocalGatewayId",
    "CarrierGatewayId",
    "VpcPeeringConnectionId",
    "CoreNetworkArn",
    "NetworkInterfaceId",
)
_DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")

_log = logging.getLogger(__name__)


class AwsRoutes:
    """The route table in the cloud config, otherwise the one with the cluster's tag."""

    def __init__(self, api: Api, instances: AwsInstances, concurrently: ConcurrentCalls) -> None:
        self._api = api
        self._instances = instances
        self._concurrently = concurrently
        self._table_id = api.config.route_table_id
        self._families = 1
        """The number of address families of the pod routes at the last read."""

    def list(self) -> Sequence[Route]:
        """Every route of the table, including others', in one call."""
        table = self._table()
        self._table_id = table["RouteTableId"]
        found = [_route(route) for route in table.get("Routes") or ()]
        self._families = len({":" in route.destination_cidr for route in found if route.owned is None}) or 1
        return found

    def quota(self) -> int | None:
        """The most routes in the table by the account's quota, which applies to each family; None if unknown.

        AWS refuses routes beyond the quota; a guess would block routes that fit.
        """
        try:
            answer = self._api.call(
                "service-quotas", "GetServiceQuota", ServiceCode=_QUOTA_SERVICE, QuotaCode=_QUOTA_CODE
            )
        except (NotFound, AccessDenied, Unavailable) as error:
            # No permission, or no network route to this service.
            _log.warning("could not read the route quota error=%r", str(error))
            return None
        return int(answer["Quota"]["Value"]) * self._families

    def create(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Create them, and turn off their machines' source/destination checks.

        An existing route to the same machine is a success.
        """
        try:
            table_id = self.known_table_id()
            closed = self._instances.with_source_dest_check({route.target_instance for route in routes})
        except CloudError as error:
            return [RouteFailure(route, error) for route in routes]
        errors = self._concurrently(partial(self._open, instance) for instance in closed)
        unopened = {instance: error for instance, error in zip(closed, errors, strict=True) if error is not None}
        failures = [
            RouteFailure(route, unopened[route.target_instance])
            for route in routes
            if route.target_instance in unopened
        ]
        ready = [route for route in routes if route.target_instance not in unopened]
        written = self._concurrently(partial(self._create, table_id, route) for route in ready)
        return self._but_there_already([*failures, *(failure for failure in written if failure is not None)])

    def delete(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Delete them; a missing route is a success."""
        try:
            table_id = self.known_table_id()
        except CloudError as error:
            return [RouteFailure(route, error) for route in routes]
        failures = self._concurrently(partial(self._delete, table_id, route) for route in routes)
        return [failure for failure in failures if failure is not None]

    def known_table_id(self) -> str:
        """The table's ID, read once."""
        if self._table_id is None:
            self._table_id = str(self._table()["RouteTableId"])
        return self._table_id

    def _table(self) -> Mapping[str, Any]:
        config = self._api.config
        if config.route_table_id is not None:
            asked: dict[str, Any] = {"RouteTableIds": [config.route_table_id]}
        else:
            filters = [{"Name": "tag-key", "Values": [config.cluster_tag]}]
            if config.vpc_id is not None:
                filters.append({"Name": "vpc-id", "Values": [config.vpc_id]})
            asked = {"Filters": filters}
        field = "cloud config: [Global] RouteTableID"
        try:
            tables = [*self._api.pages("ec2", "DescribeRouteTables", "RouteTables", **asked)]
        except NotFound as error:
            raise InvalidConfiguration(field, f"route table {config.route_table_id} does not exist") from error
        if len(tables) == 1:
            return tables[0]
        found = ", ".join(sorted(table["RouteTableId"] for table in tables)) or "no route table"
        verb = "have" if len(tables) > 1 else "has"
        why = f"not set, and {found} {verb} the tag {config.cluster_tag}"
        raise InvalidConfiguration(
            field, why, "the ID of the route table for pod routes, or the tag on exactly one route table"
        )

    def _open(self, instance_id: str) -> CloudError | None:
        try:
            self._api.call("ec2", "ModifyInstanceAttribute", InstanceId=instance_id, SourceDestCheck={"Value": False})
        except CloudError as error:
            return error
        self._instances.source_dest_check_is_off(instance_id)
        return None

    def _create(self, table_id: str, route: Route) -> RouteFailure | None:
        destination = _destination(route.destination_cidr)
        try:
            # What a first try has written is told by `_but_there_already`.
            self._api.call(
                "ec2",
                "CreateRoute",
                idempotent=True,
                RouteTableId=table_id,
                InstanceId=route.target_instance,
                **destination,
            )
        except CloudError as error:
            return RouteFailure(route, error)
        return None

    def _delete(self, table_id: str, route: Route) -> RouteFailure | None:
        try:
            self._api.call("ec2", "DeleteRoute", RouteTableId=table_id, **_destination(route.destination_cidr))
        except NotFound as error:
            # The route table itself may not exist either.
            return None if error_code(error) == "InvalidRoute.NotFound" else RouteFailure(route, error)
        except CloudError as error:
            return RouteFailure(route, error)
        return None

    def _but_there_already(self, failures: Sequence[RouteFailure]) -> Sequence[RouteFailure]:
        """The failures whose route does not exist as wanted after all."""
        if not any(error_code(failure.error) == "RouteAlreadyExists" for failure in failures):
            return failures
        try:
            there = {(route.destination_cidr, route.target_instance) for route in self.list() if not route.blackhole}
        except CloudError as error:
            _log.warning("could not read the route table error=%r", str(error))
            return failures
        wanted = ((failure, (failure.route.destination_cidr, failure.route.target_instance)) for failure in failures)
        return [failure for failure, route in wanted if route not in there]


def _route(route: Mapping[str, Any]) -> Route:
    blackhole = route.get("State") == "blackhole"
    target = next((route[each] for each in _TARGETS if route.get(each)), "")
    if blackhole and target.startswith("eni-"):
        # For a terminated instance, AWS may return only its deleted network interface.
        target = ""
    return Route(
        destination_cidr=next((route[each] for each in _DESTINATIONS if route.get(each)), ""),
        target_instance=target,
        blackhole=blackhole,
        # Routes to a gateway were never pod routes.
        owned=None if target.startswith("i-") or not target else False,
    )


def _destination(cidr: str) -> dict[str, Any]:
    return {"DestinationIpv6CidrBlock" if ":" in cidr else "DestinationCidrBlock": cidr}

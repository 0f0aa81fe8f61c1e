"""The provider's functions that the stacks use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from local.aws.provider.api import Api
from local.plugins.provider import ProviderError
from local.plugins.values import PropertyMap


def answer(api: Api, token: str, args: PropertyMap) -> PropertyMap:
    """The function's answer. Raises ProviderError for an unsupported or failed function."""
    function = _FUNCTIONS.get(token)
    if function is None:
        raise ProviderError(f"not supported against a simulator (supported: {', '.join(sorted(_FUNCTIONS))})")
    if args.get("region") not in (None, api.region):
        raise ProviderError(f"region is {args['region']!r}; allowed: the provider's, {api.region!r}")
    return {**args, **function(api, args), "region": api.region}


def _availability_zones(api: Api, args: PropertyMap) -> PropertyMap:
    if unknown := args.keys() - {"state", "region"}:
        raise ProviderError(f"getAvailabilityZones: not supported against a simulator: {', '.join(sorted(unknown))}")
    zones = api.call("ec2", "describe_availability_zones")["AvailabilityZones"]
    wanted: list[dict[str, Any]] = [z for z in zones if args.get("state") in (None, z["State"])]
    return {
        "id": api.region,
        "names": sorted(z["ZoneName"] for z in wanted),
        "zoneIds": [z["ZoneId"] for z in sorted(wanted, key=lambda z: str(z["ZoneName"]))],
        "groupNames": sorted({z.get("GroupName", "") for z in wanted}),
    }


def _caller_identity(api: Api, args: PropertyMap) -> PropertyMap:
    del args
    caller = api.call("sts", "get_caller_identity")
    account = caller["Account"]
    return {"id": account, "accountId": account, "arn": caller["Arn"], "userId": caller["UserId"]}


def _partition(api: Api, args: PropertyMap) -> PropertyMap:
    del api, args
    return {"id": "aws", "partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


def _region(api: Api, args: PropertyMap) -> PropertyMap:
    del args
    return {"id": api.region, "name": api.region, "description": api.region, "endpoint": ""}


_FUNCTIONS: Final[Mapping[str, Callable[[Api, PropertyMap], PropertyMap]]] = {
    "aws:index/getAvailabilityZones:getAvailabilityZones": _availability_zones,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
}

"""What the recorder answers to provider functions (`invoke`): a few, each by its own rule; the others are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from local.engine.providers.provider import ProviderError
from local.engine.providers.recorder_values import ACCOUNT, Place, simulated_text
from local.engine.values import PropertyMap, without_secrets

_ZONES: Final = "abc"


def answer(token: str, args: PropertyMap, place: Place) -> PropertyMap:
    """The simulated result of a provider function. Raises ProviderError for one that has none here."""
    rule = _RULES.get(token)
    if rule is None:
        raise ProviderError(
            f"the function {token} has no simulated answer; the recorder has: {', '.join(sorted(_RULES))}"
        )
    plain = without_secrets(args)
    return {**args, **rule(plain, replace(place, region=plain.get("region") or place.region))}


def _availability_zones(args: PropertyMap, place: Place) -> PropertyMap:
    del args
    return {
        "id": place.region,
        "names": [f"{place.region}{letter}" for letter in _ZONES],
        "zoneIds": [f"{place.region}-az{number}" for number in range(1, len(_ZONES) + 1)],
        "groupNames": [place.region],
        "region": place.region,
    }


def _caller_identity(args: PropertyMap, place: Place) -> PropertyMap:
    del args, place
    user = simulated_text("caller")
    return {"id": ACCOUNT, "accountId": ACCOUNT, "arn": f"arn:aws:iam::{ACCOUNT}:user/{user}", "userId": user}


def _partition(args: PropertyMap, place: Place) -> PropertyMap:
    del args
    return {
        "id": "aws",
        "partition": "aws",
        "dnsSuffix": "amazonaws.com",
        "reverseDnsPrefix": "com.amazonaws",
        "region": place.region,
    }


def _region(args: PropertyMap, place: Place) -> PropertyMap:
    del args
    region = place.region
    return {"id": region, "name": region, "region": region, "description": "simulated", "endpoint": ""}


def _ami(args: PropertyMap, place: Place) -> PropertyMap:
    image = simulated_text("ami", str(sorted(args.items(), key=str)))
    return {"id": image, "imageId": image, "name": image, "architecture": "x86_64", "region": place.region}


def _parameter(args: PropertyMap, place: Place) -> PropertyMap:
    name = str(args.get("name"))
    value = simulated_text("parameter", name)
    arn = f"arn:aws:ssm:{place.region}:{ACCOUNT}:parameter/{name.lstrip('/')}"
    return {
        "id": name,
        "name": name,
        "arn": arn,
        "type": "String",
        "value": value,
        "insecureValue": value,
        "version": 1,
        "region": place.region,
    }


_RULES: Final[Mapping[str, Callable[[PropertyMap, Place], PropertyMap]]] = {
    "aws:index/getAvailabilityZones:getAvailabilityZones": _availability_zones,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
    "aws:ec2/getAmi:getAmi": _ami,
    "aws:ssm/getParameter:getParameter": _parameter,
}

"""What the recorder needs to know of AWS's package: ids, ARNs, the answers of a few functions, what is replaced."""

from __future__ import annotations

from typing import Final

from local.aws.provider.comparison import compare
from local.aws.provider.kinds import KINDS
from local.plugins.provider import DiffRequest, DiffResult
from local.plugins.recorder import Recorder
from local.plugins.recorder_values import ACCOUNT, Place, Rules, simulated_text
from local.plugins.urn import type_of
from local.plugins.values import PropertyMap

_ZONES: Final = "abc"


def recorder(config: PropertyMap) -> Recorder:
    """A recorder of AWS's resources. Raises ProviderError as `Recorder` does."""
    return Recorder(config, RULES)


def _compare(request: DiffRequest) -> DiffResult:
    kind = KINDS.get(type_of(request.urn))
    return compare(kind, request) if kind else DiffResult(None)


def _text(kind: str, key: str, id: str, place: Place) -> str | None:
    if not key.lower().endswith("arn"):
        return None
    module = kind.partition(":")[2].partition("/")[0]
    return f"arn:aws:{module}:{place.region}:{ACCOUNT}:{id}"


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


RULES: Final = Rules(
    # Without EKS's cluster: by its simulated id a preview sees that there is no cluster to ask.
    named=frozenset(
        {
            "aws:autoscaling/group:Group",
            "aws:iam/instanceProfile:InstanceProfile",
            "aws:iam/role:Role",
        }
    ),
    prefixes={"aws:ec2/vpc:Vpc": "vpc-"},
    within={"aws:eks/cluster:Cluster": ("vpcConfig", ("clusterSecurityGroupId", "vpcId"))},
    text=_text,
    functions={
        "aws:index/getAvailabilityZones:getAvailabilityZones": _availability_zones,
        "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
        "aws:index/getPartition:getPartition": _partition,
        "aws:index/getRegion:getRegion": _region,
        "aws:ec2/getAmi:getAmi": _ami,
        "aws:ssm/getParameter:getParameter": _parameter,
    },
    compare=_compare,
)

"""What the compared Services may name, by words for what AWS calls it: certificates, addresses, groups, subnets."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import Any

import boto3

from benchmarks.aws.account import KEY, REGION, ZONES
from benchmarks.aws.cluster import Cluster
from cloud_controller.kube import NODES, PatchType

NODE_COUNT = 4


def furnish(cluster: Cluster, url: str) -> dict[str, str]:
    """Nodes, two of which carry `tier=edge`, and all that the Services name: the id of each word."""
    account = cluster.account
    words = {"vpc": account.vpc, "nodes": account.node_group}
    for zone, public, private in zip(ZONES, account.public, account.private, strict=True):
        words |= {f"public-{zone[-1]}": public, f"private-{zone[-1]}": private}
        words[f"eip-{zone[-1]}"] = account.ec2.allocate_address(Domain="vpc")["AllocationId"]
    words |= {name: account.add_group(name, {}) for name in ("group-1", "group-2")}
    session = boto3.Session(aws_access_key_id=KEY, aws_secret_access_key=KEY, region_name=REGION)
    acm = session.client("acm", endpoint_url=url)
    words["certificate"] = acm.request_certificate(DomainName="shop.example.com")["CertificateArn"]
    session.client("s3", endpoint_url=url).create_bucket(Bucket="access-logs")
    for number, machine in enumerate(cluster.add_nodes(NODE_COUNT, initialised=True)):
        words[f"node-{number}"] = machine.id
        if number < NODE_COUNT / 2:
            labels = {"metadata": {"labels": {"tier": "edge"}}}
            cluster.kube.patch(NODES, machine.name, labels, type=PatchType.MERGE)
    return words


def with_ids(value: Any, words: Mapping[str, str]) -> Any:
    """The value with the id in the place of each `${word}`."""
    match value:
        case str():
            return _Template(value).substitute(words)
        case dict():
            return {key: with_ids(part, words) for key, part in value.items()}
        case list():
            return [with_ids(part, words) for part in value]
        case _:
            return value


class _Template(Template):
    idpattern = r"[a-z0-9-]+"

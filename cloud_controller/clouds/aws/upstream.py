"""Recognises resources that upstream (cloud-provider-aws) created, so that they can be adopted. Pure.

Upstream finds its load balancers by their names, which never change, and marks them with the cluster's tag. An
adopted load balancer keeps its name, so that upstream finds it again if the cluster goes back to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from cloud_controller.clouds.aws.config import CLUSTER_PREFIX, Config
from cloud_controller.clouds.aws.facts import UPSTREAM_GROUP_PREFIX, SecurityGroup
from cloud_controller.clouds.aws.names import SERVICE_NAME_TAG
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    PRESERVED_TAG,
    Adoptable,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)

MAKER = "the AWS cloud controller manager"
_NAME = re.compile("a[0-9a-f]{31}")
_LONGEST = 32


def name_for(uid: str) -> str:
    """Upstream's name for the load balancer of the Service with this UID."""
    return f"a{uid.replace('-', '')}"[:_LONGEST]


def is_name(name: str) -> bool:
    """Whether a load balancer's name has upstream's form."""
    return _NAME.fullmatch(name) is not None


def adoptable(
    name: str, vpc_id: str | None, tags: Mapping[str, str], config: Config, our_vpc_id: str
) -> Adoptable | None:
    """What can be adopted of this load balancer; None if it is not upstream's, or no longer."""
    if not is_name(name) or PRESERVED_TAG in tags or Owner.of_tags(tags) is not None:
        return None
    refusal = None
    if config.cluster_tag not in tags:
        others = sorted(key for key in tags if key.startswith(CLUSTER_PREFIX))
        refusal = f"it does not have the tag {config.cluster_tag}" + (
            f", but has {', '.join(others)}" if others else ""
        )
    elif vpc_id != our_vpc_id:
        refusal = f"it is in {vpc_id}, but the cluster's VPC is {our_vpc_id}"
    return Adoptable(MAKER, name, tags.get(SERVICE_NAME_TAG, ""), refusal)


def belongs_to_others(name: str, tags: Mapping[str, str], config: Config) -> bool:
    """Whether the tags, which upstream sets once, permanently assign it to another cluster."""
    foreign = any(key.startswith(CLUSTER_PREFIX) for key in tags) and config.cluster_tag not in tags
    return is_name(name) and (foreign or tags.get(CLUSTER_TAG, config.cluster_id) != config.cluster_id)


def model_name(id: str, tags: Mapping[str, str], cluster_id: str) -> str:
    """The name for users of a load balancer that is not adopted yet."""
    namespace, _, name = tags.get(SERVICE_NAME_TAG, "").partition("/")
    return Owner(cluster_id, "", namespace, name).load_balancer_name if is_name(id) and name else id


def not_adopted(
    id: str, adoptable: Adoptable, state: LoadBalancerState = LoadBalancerState.READY
) -> ObservedLoadBalancer:
    """A load balancer without known details."""
    return ObservedLoadBalancer(id, state, LoadBalancerModel(id), adoptable=adoptable)


def own_groups(
    groups: Collection[SecurityGroup], load_balancer_id: str, attached: Collection[str]
) -> list[SecurityGroup]:
    """The cluster's security groups that upstream created for this load balancer."""
    return [
        group
        for group in groups
        if group.name == f"{UPSTREAM_GROUP_PREFIX}{load_balancer_id}"
        or (group.id in attached and group.managed_by_upstream)
    ]


def told_apart(
    network: Sequence[ObservedLoadBalancer], classic: Sequence[ObservedLoadBalancer]
) -> Iterator[ObservedLoadBalancer]:
    """Both kinds, with name clashes refused: upstream may have created one of each kind for a Service.

    Then it is unknown which one serves, and none is adopted.
    """
    both = {lb.id for lb in network} & {lb.id for lb in classic}
    adopted = {lb.id for lb in (*network, *classic) if lb.adoptable is None}
    for lb in (*network, *classic):
        if lb.id not in both or lb.adoptable is None:
            yield lb
    for lb in network:
        if lb.id in both - adopted and lb.adoptable is not None:
            refusal = "both a classic and a network load balancer have this name; delete the unused one"
            yield not_adopted(lb.id, replace(lb.adoptable, refusal=refusal))

"""The names of resources in AWS, so that a repeated creation finds the first attempt's resource.

Names of load balancers, target groups and security groups never change and have at most 32 characters. Tags, never
names, state the owner.
"""

from __future__ import annotations

import hashlib
import re

from cloud_controller.load_balancers.model import LoadBalancerModel, Owner

LOAD_BALANCER_TAG = "cloud-controller/load-balancer"
"""The tag of target groups and security groups with their load balancer's ID; on a load balancer with a name that a
user chose, its own ID."""

POOL_TAG = "cloud-controller/pool"
"""The tag of target groups with the name of their pool."""

LISTENER_ATTRIBUTES_TAG = "cloud-controller/listener-attributes"
"""The tag of load balancers with non-default listener attributes: AWS returns them one by one, and only with this
tag are they read."""

SERVICE_NAME_TAG = "kubernetes.io/service-name"
"""The tag of load balancers and target groups, also upstream's: NAMESPACE/NAME of the Service."""

PREFIX = "k8s-"
"""The prefix of all names given here; AWS's names never change."""


def load_balancer_name(model: LoadBalancerModel, client_token: str) -> str:
    """The AWS name, and ID, of the load balancer created from this model with this token.

    It differs by kind, so that parts of one kind are never taken for parts of the other.
    """
    kind = str(model.attributes.get("type", ""))
    return _name(Owner.of_tags(model.tags), f"{client_token}/{kind}")


def pool_name(protocol: str, port: int, target_type: str, ip_address_type: str) -> str:
    """The pool of the network listener on this port; the name contains what a target group cannot change."""
    by_pod = "-ip" if target_type == "ip" else ""
    return f"{protocol.lower()}-{port}{by_pod}{'-ipv6' if ip_address_type == 'ipv6' else ''}"


def target_group_name(load_balancer_id: str, pool: str, owner: Owner | None) -> str:
    """The AWS name of the target group for this pool of a load balancer."""
    return _name(owner, f"{load_balancer_id}/{pool}")


def shared_group_name(cluster_id: str) -> str:
    """The AWS name of the security group that all load balancers of a cluster share.

    The prefix is not `k8s-traffic-`, which the AWS Load Balancer Controller uses for its own.
    """
    return f"{PREFIX}shared-{_letters(cluster_id, 9)}-{_digest(f'shared/{cluster_id}')}"


def _name(owner: Owner | None, distinct: str) -> str:
    people = [_letters(text, 8) for text in (owner.namespace, owner.name)] if owner else []
    return PREFIX + "-".join([*(part for part in people if part), _digest(distinct)])


def _letters(text: str, most: int) -> str:
    return re.sub("[^0-9A-Za-z]", "", text)[:most]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]

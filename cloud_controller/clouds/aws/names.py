"""The names of resources in AWS, which never change, and the tags that link resources to each other."""

from __future__ import annotations

from cloud_controller.clouds.common.names import hashed_name
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

_LONGEST = 32
"""The limit for load balancers and target groups; that of security groups is higher."""


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
    # One less than the limit, as in the first version: names of existing groups must not change.
    return hashed_name(f"{PREFIX}shared-", [cluster_id], f"shared/{cluster_id}", longest=_LONGEST - 1)


def _name(owner: Owner | None, distinct: str) -> str:
    return hashed_name(PREFIX, [owner.namespace, owner.name] if owner else [], distinct, longest=_LONGEST)

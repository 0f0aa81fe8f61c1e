"""What things are called in AWS, so that a creation that is repeated finds what the first try made.

Load balancers, target groups and security groups have names that are theirs for life and at most 32 characters long;
whose a thing is stands in its tags, never in its name.
"""

from __future__ import annotations

import hashlib
import re

from cloud_controller.load_balancers.model import LoadBalancerModel, Owner

LOAD_BALANCER_TAG = "cloud-controller/load-balancer"
"""On target groups and security groups: the id of the load balancer for which they were made; on a load balancer whose
name people chose: its own id."""

POOL_TAG = "cloud-controller/pool"
"""On target groups: the pool of the model that it is."""

LISTENER_ATTRIBUTES_TAG = "cloud-controller/listener-attributes"
"""On load balancers with a listener that was given attributes of its own: AWS tells them one by one, and what has no
such tag is never asked."""

SERVICE_NAME_TAG = "kubernetes.io/service-name"
"""On load balancers and target groups, upstream's controller's too: NAMESPACE/NAME of the Service."""

PREFIX = "k8s-"
"""What every name that is given here begins with; AWS keeps names for life."""


def load_balancer_name(model: LoadBalancerModel, client_token: str) -> str:
    """The AWS name, and here the id, of the load balancer that is made of this model with this token.

    A network and a classic one differ, so that what is left of the one is never taken for a part of the other.
    """
    kind = str(model.attributes.get("type", ""))
    return _name(Owner.of_tags(model.tags), f"{client_token}/{kind}")


def pool_name(protocol: str, port: int, target_type: str, ip_address_type: str) -> str:
    """The pool behind the network listener of this port; what its target group cannot change is in the name."""
    by_pod = "-ip" if target_type == "ip" else ""
    return f"{protocol.lower()}-{port}{by_pod}{'-ipv6' if ip_address_type == 'ipv6' else ''}"


def target_group_name(load_balancer_id: str, pool: str, owner: Owner | None) -> str:
    """The AWS name of the target group that is this pool of a load balancer."""
    return _name(owner, f"{load_balancer_id}/{pool}")


def shared_group_name(cluster_id: str) -> str:
    """The AWS name of the security group that all load balancers of a cluster are in.

    Not `k8s-traffic-`, with the digest of the cluster's name: so the AWS Load Balancer Controller calls one of its own.
    """
    return f"{PREFIX}shared-{_letters(cluster_id, 9)}-{_digest(f'shared/{cluster_id}')}"


def _name(owner: Owner | None, distinct: str) -> str:
    people = [_letters(text, 8) for text in (owner.namespace, owner.name)] if owner else []
    return PREFIX + "-".join([*(part for part in people if part), _digest(distinct)])


def _letters(text: str, most: int) -> str:
    return re.sub("[^0-9A-Za-z]", "", text)[:most]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]

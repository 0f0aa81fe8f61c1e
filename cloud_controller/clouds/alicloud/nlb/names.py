"""The tags and names by which the parts of an NLB are found and shown."""

from __future__ import annotations

import re

from cloud_controller.load_balancers.model import Owner

LOAD_BALANCER_TAG = "cloud-controller/load-balancer"
"""The tag of server groups and security groups with their load balancer's ID."""

POOL_TAG = "cloud-controller/pool"
"""The tag of server groups with the name of their pool."""

OWN_GROUP_TAG = "cloud-controller/own-security-group"
"""The tag of load balancers that have, or had, a security group made for them: only with it is one looked for."""

_LONGEST = 128
"""Characters of a name and of a tag's value."""


def display_name(*words: str) -> str:
    """A name for people, from these words: it begins with a letter, as names of the API must."""
    joined = re.sub("[^A-Za-z0-9._-]", "-", ".".join(words))
    return (joined if joined[:1].isalpha() else f"k8s-{joined}")[:_LONGEST]


def part_name(owner: Owner | None, *words: str) -> str:
    """The name of a part of a load balancer, such as `k8s.tcp-80.web.default.c1`."""
    return display_name("k8s", *words, *((owner.name, owner.namespace, owner.cluster_id) if owner else ()))


def pool_name(transport: str, port: int, *, tls: bool, by_address: bool, any_port: bool) -> str:
    """The pool of the Service's port; the name contains what a server group cannot change while it is in use."""
    kinds = (("tls", tls), ("ip", by_address), ("any", any_port))
    return "-".join([transport.lower(), str(port), *(word for word, holds in kinds if holds)])

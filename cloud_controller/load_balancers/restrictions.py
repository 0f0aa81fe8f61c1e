"""Rejects unknown annotations whose names suggest that they restrict access. Pure.

Other unknown annotations are ignored. IGNORING THESE WOULD LEAVE A LOAD BALANCER OPEN that its author believes to be
restricted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cloud_controller import patterns
from cloud_controller.cloud_errors import InvalidConfiguration

SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
"""Kubernetes' own annotation for `spec.loadBalancerSourceRanges`; every cloud honours both."""
MOST_RANGES = 1000
"""In either. A cloud whose load balancers have room for fewer has a rule of its own."""

_NOT_IN_WORDS = re.compile("[^a-z0-9]")
CLIENTS = re.compile(
    # Kubernetes' own annotation with another domain or spelling; nginx's whitelist-source-range.
    r"sources?(ip)?(ranges?|cidrs?)"
    # allowed-ip-ranges, allowed-service-tags, inbound-cidrs, allow-rules: other controllers' annotations.
    r"|(allow|allowed|deny|denied|inbound)(all)?(client|service|source)?(ip|ips|cidrs?|ipranges?|ranges?|rules?|tags?)$"
    r"|(allow|block|deny|black|white)list"
    # Names that several clouds use.
    r"|prefixlists?$|securitygroups?(ids?)?$|acl(arn|id|status|type)?s?$|firewall(ids?|rules?)?$"
    r"|loadbalancer.*(mutual(auth|tls)|mtls|cacert)"
)
INTERNAL = re.compile("loadbalancer.*internal|internal.*loadbalancer|loadbalancer.*disablepublic")
INTERNAL_VALUES = ("internal", "intranet", "private")
SCHEMES = ("scheme", "address_type")
"""The model fields that say whether a load balancer is internal, as clouds call them."""
OPEN = "it restricts access, but this cloud does not support it, so every client could connect"
INSTEAD_OF_OPEN = f"spec.loadBalancerSourceRanges, or {SOURCE_RANGES}"
PUBLIC = "it asks for an internal load balancer, but this cloud does not support it, so it would be public"
INSTEAD_OF_PUBLIC = "this cloud's own annotation for the scheme"
SWITCHED_OFF = ("", "0", "disabled", "false", "no", "none", "off")


def refuse_unknown(annotations: Mapping[str, str], *, internal: bool) -> None:
    """Raise InvalidConfiguration for the first of these unknown annotations that restricts access.

    `internal`: the load balancer is internal already, so annotations that ask for that are harmless.
    """
    for name, text in sorted(annotations.items()):
        value = patterns.lower(text.strip())
        if value in SWITCHED_OFF:
            continue
        words = _NOT_IN_WORDS.sub("", patterns.lower(name))
        if CLIENTS.search(words):
            raise InvalidConfiguration(f"annotation {name}", OPEN, INSTEAD_OF_OPEN)
        if not internal and (INTERNAL.search(words) or ("loadbalancer" in words and value in INTERNAL_VALUES)):
            raise InvalidConfiguration(f"annotation {name}", PUBLIC, INSTEAD_OF_PUBLIC)

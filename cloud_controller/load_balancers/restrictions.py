"""Rejects unknown annotations whose names suggest that they restrict access. Pure.

Other unknown annotations are ignored. IGNORING THESE WOULD LEAVE A LOAD BALANCER OPEN that its author believes to be
restricted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cloud_controller.cloud_errors import InvalidConfiguration

SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
"""Kubernetes' own annotation for `spec.loadBalancerSourceRanges`; every cloud honours both."""

_NOT_IN_WORDS = re.compile("[^a-z0-9]")
_CLIENTS = re.compile(
    # Kubernetes' own annotation with another domain or spelling; nginx's whitelist-source-range.
    r"sources?(ip)?(ranges?|cidrs?)"
    # allowed-ip-ranges, allowed-service-tags, inbound-cidrs, allow-rules: other controllers' annotations.
    r"|(allow|allowed|deny|denied|inbound)(all)?(client|service|source)?(ip|ips|cidrs?|ipranges?|ranges?|rules?|tags?)$"
    r"|(allow|block|deny|black|white)list"
    # Names that several clouds use.
    r"|prefixlists?$|securitygroups?(ids?)?$|acl(arn|id|status|type)?s?$|firewall(ids?|rules?)?$"
    r"|loadbalancer.*(mutual(auth|tls)|mtls|cacert)"
)
_INTERNAL = re.compile("loadbalancer.*internal|internal.*loadbalancer|loadbalancer.*disablepublic")
INTERNAL_VALUES = ("internal", "intranet", "private")
_SWITCHED_OFF = ("", "0", "disabled", "false", "no", "none", "off")


def refuse_unknown(annotations: Mapping[str, str], *, internal: bool) -> None:
    """Raise InvalidConfiguration for the first of these unknown annotations that restricts access.

    `internal`: the load balancer is internal already, so annotations that ask for that are harmless.
    """
    for name, text in sorted(annotations.items()):
        value = text.strip().lower()
        if value in _SWITCHED_OFF:
            continue
        words = _NOT_IN_WORDS.sub("", name.lower())
        if _CLIENTS.search(words):
            why = "it restricts access, but this cloud does not support it, so every client could connect"
            raise InvalidConfiguration(f"annotation {name}", why, f"spec.loadBalancerSourceRanges, or {SOURCE_RANGES}")
        if not internal and (_INTERNAL.search(words) or ("loadbalancer" in words and value in INTERNAL_VALUES)):
            why = "it asks for an internal load balancer, but this cloud does not support it, so it would be public"
            raise InvalidConfiguration(f"annotation {name}", why, "this cloud's own annotation for the scheme")

"""How parameters of Alibaba Cloud's RPC actions go onto the wire. Pure.

Which of them are in the form body, which are JSON texts and which actions have no region is as in the official SDK. A
test compares these tables with the SDK for every action that this cloud calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

_READS = re.compile("(Describe|List|Get|Query).*")

_NLB_IN_QUERY = frozenset(
    {
        "GetJobStatus",
        "GetListenerAttribute",
        "GetListenerHealthStatus",
        "GetLoadBalancerAttribute",
        "ListAsynJobs",
        "ListListeners",
        "ListLoadBalancers",
    }
)
"""NLB's actions whose parameters are in the query; of all others of NLB they are in the form body."""
_NLB_TAG_IN_QUERY = frozenset({"ListSecurityPolicy", "ListServerGroups"})
_WITHOUT_REGION = frozenset(
    {
        ("ecs", "DescribeInstanceAttribute"),
        ("nlb", "GetJobStatus"),
        ("nlb", "ListAsynJobs"),
        ("quotas", "GetProductQuota"),
        ("quotas", "ListProductQuotaDimensions"),
        ("sts", "AssumeRoleWithOIDC"),
        ("sts", "GetCallerIdentity"),
    }
)
_JSON = frozenset(
    {("nlb", "CreateListener", "ProxyProtocolV2Config"), ("nlb", "UpdateListenerAttribute", "ProxyProtocolV2Config")}
)
"""Parameters that are structures in the SDK, but one JSON text on the wire."""


def is_read(action: str) -> bool:
    """Whether the action changes nothing."""
    return bool(_READS.fullmatch(action))


def query_and_form(
    product: str, action: str, parameters: Mapping[str, Any], region: str
) -> tuple[dict[str, str], dict[str, str]]:
    """The parameters as flat texts, in the query or in the form body, with the region if the action has one."""
    given = dict(parameters)
    if (product, action) not in _WITHOUT_REGION:
        given.setdefault("RegionId", region)
    query: dict[str, str] = {}
    form: dict[str, str] = {}
    for name, value in given.items():
        if (product, action, name) in _JSON and not isinstance(value, str | None):
            value = orjson.dumps(value).decode()
        (form if _is_in_form(product, action, name) else query).update(_flat(name, value))
    return query, form


def _is_in_form(product: str, action: str, name: str) -> bool:
    if product == "sts":
        # Unlike the SDK, which sends the token of a service account in the URL.
        return action == "AssumeRoleWithOIDC"
    if product == "quotas":
        return True
    if product != "nlb" or action in _NLB_IN_QUERY:
        return False
    return not (action in _NLB_TAG_IN_QUERY and name == "Tag")


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case None:
            return
        case bool():
            yield name, "true" if value else "false"
        case Mapping():
            for key, inner in value.items():
                yield from _flat(f"{name}.{key}", inner)
        case list() | tuple():
            for number, inner in enumerate(value, start=1):
                yield from _flat(f"{name}.{number}", inner)
        case _:
            yield name, str(value)

"""NLB: tags of its resources."""

from __future__ import annotations

from typing import Any, Final

from local.alicloud.account import OWNER, Account
from local.alicloud.nlb_jobs import BALANCER, GROUP, LISTENER
from local.alicloud.products import NLB
from local.alicloud.tagging import list_tags, set_tags, take_tags
from local.standin.actions import Arguments

_KINDS: Final = {"loadbalancer": BALANCER, "listener": LISTENER, "servergroup": GROUP}


@NLB.action("TagResources")
def tag_resources(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Resources of one type, 20 tags."""
    return set_tags(account, arguments, _KINDS)


@NLB.action("UntagResources")
def untag_resources(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Some keys, or all."""
    return take_tags(account, arguments, _KINDS)


@NLB.action("ListTagResources")
def list_tag_resources(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By resources or tags; pages by token."""
    page, fields = list_tags(account, arguments, _KINDS, 50, 50)
    shown = [{**each, "AliUid": OWNER, "RegionNo": account.region} for each in page]
    return {"TagResources": shown, "MaxResults": arguments.get("MaxResults", 50), **fields}

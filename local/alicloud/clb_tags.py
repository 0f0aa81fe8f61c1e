"""CLB: tags of its resources."""

from __future__ import annotations

from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.clb_acls import ACL
from local.alicloud.clb_balancers import CLB, GROUP, LISTENER
from local.alicloud.clb_certificates import CERTIFICATE
from local.alicloud.products import SLB
from local.alicloud.tagging import list_tags, set_tags, take_tags
from local.standin.actions import Arguments

_KINDS: Final = {
    "instance": CLB,
    "certificate": CERTIFICATE,
    "acl": ACL,
    "listener": LISTENER,
    "vservergroup": GROUP,
}


@SLB.action("TagResources")
def tag_resources(account: Account, arguments: Arguments) -> dict[str, Any]:
    """At most 20 resources of one type, 20 tags."""
    return set_tags(account, arguments, _KINDS)


@SLB.action("UntagResources")
def untag_resources(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Some keys, or all."""
    return take_tags(account, arguments, _KINDS)


@SLB.action("ListTagResources")
def list_tag_resources(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By resources or tags; pages by token."""
    page, fields = list_tags(account, arguments, _KINDS, 50, 50)
    return {"TagResources": {"TagResource": page}, **{name: fields[name] for name in fields if name == "NextToken"}}

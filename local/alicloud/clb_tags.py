"""CLB: tags of its resources, by the newer actions and the older ones of load balancers alone."""

from __future__ import annotations

from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.checks import tags_of
from local.alicloud.clb_acls import ACL
from local.alicloud.clb_balancers import CLB, GROUP, LISTENER, balancer_of, older_tags
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


@SLB.action("AddTags")
def add_tags(account: Account, arguments: Arguments) -> dict[str, Any]:
    """The older action: of one load balancer, as JSON."""
    balancer = balancer_of(account, arguments)
    added = tags_of(older_tags(arguments["Tags"]), account.quotas.tags)
    account.fill(CLB, balancer["id"], tags={**balancer["tags"], **added})
    return {}


@SLB.action("RemoveTags")
def remove_tags(account: Account, arguments: Arguments) -> dict[str, Any]:
    """The older action."""
    balancer = balancer_of(account, arguments)
    gone = {tag["Key"] for tag in older_tags(arguments["Tags"])}
    account.fill(CLB, balancer["id"], tags={key: text for key, text in balancer["tags"].items() if key not in gone})
    return {}

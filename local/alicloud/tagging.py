"""The tag actions that CLB and NLB have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.alicloud.account import Account
from local.alicloud.checks import has_tags, tags_of
from local.alicloud.paging import tokened
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

MOST_RESOURCES = 20
"""In a call."""

Kinds = Mapping[str, str]
"""Of objects, by ResourceType."""


def set_tags(account: Account, arguments: Arguments, kinds: Kinds) -> dict[str, Any]:
    """Add tags to resources, or change their values."""
    tags = tags_of(arguments["Tag"], account.quotas.tags)
    for resource in _resources(account, arguments, kinds):
        merged = {**resource["tags"], **tags}
        if len(merged) > account.quotas.tags:
            raise Refusal(400, "SizeLimitExceeded.Tag", f"{resource['id']} would have {len(merged)} tags.")
        account.fill(_kind(arguments, kinds), resource["id"], tags=merged)
    return {}


def take_tags(account: Account, arguments: Arguments, kinds: Kinds) -> dict[str, Any]:
    """Remove the keys, or with All every tag."""
    keys, takes_all = arguments.get("TagKey", []), arguments.get("All", False)
    if not keys and not takes_all:
        raise Refusal(400, "MissingParam.TagKey", "The param TagKey is missing.")
    for resource in _resources(account, arguments, kinds):
        left = {key: text for key, text in resource["tags"].items() if keys and key not in keys}
        account.fill(_kind(arguments, kinds), resource["id"], tags=left)
    return {}


def list_tags(
    account: Account, arguments: Arguments, kinds: Kinds, size: int, largest: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A page of tags, one entry a tag, and the fields that tell of it."""
    if "ResourceId" not in arguments and "Tag" not in arguments:
        raise Refusal(400, "MissingParam.ResourceId", "ResourceId or Tag must be given.")
    asked = arguments.get("Tag", [])
    keys = {tag["Key"] for tag in asked}
    kind = _kind(arguments, kinds)
    found = _known(account, arguments, kind) if "ResourceId" in arguments else account.store.all(kind)
    shown = [
        {
            "ResourceId": each["id"],
            "ResourceType": arguments["ResourceType"],
            "TagKey": key,
            "TagValue": text,
        }
        for each in found
        if has_tags(each["tags"], asked)
        for key, text in each["tags"].items()
        if not keys or key in keys
    ]
    return tokened(arguments, shown, size, largest)


def _resources(account: Account, arguments: Arguments, kinds: Kinds) -> list[Object]:
    kind = _kind(arguments, kinds)
    found = _known(account, arguments, kind)
    if missing := {*arguments["ResourceId"]} - {each["id"] for each in found}:
        raise Refusal(404, "InvalidResourceId.NotFound", f"The specified ResourceId does not exist: {min(missing)}.")
    return found


def _known(account: Account, arguments: Arguments, kind: str) -> list[Object]:
    """Those of the asked resources that exist."""
    ids = list(dict.fromkeys(arguments["ResourceId"]))
    if len(ids) > MOST_RESOURCES:
        raise Refusal(400, "SizeLimitExceeded.ResourceId", f"{len(ids)} resources; a call takes {MOST_RESOURCES}.")
    return [found for each in ids if (found := account.store.get(kind, each)) is not None]


def _kind(arguments: Arguments, kinds: Kinds) -> str:
    kind = arguments["ResourceType"]
    if kind not in kinds:
        message = f"The param ResourceType is illegal: {kind!r} is not one of {', '.join(kinds)}."
        raise Refusal(400, "InvalidParam.ResourceType", message)
    return kinds[kind]

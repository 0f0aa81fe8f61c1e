"""IAM: roles and instance profiles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from local.aws.provider.api import Api, Deadline
from local.aws.provider.kind import (
    Change,
    Creation,
    Kind,
    completing,
    find_or_make,
    made_by,
    present,
    tag_changes,
    tag_list,
    tag_outputs,
)
from local.plugins.values import PropertyMap, Value

TAKEN: Final = "EntityAlreadyExists"
"""IAM's error code for a name in use."""


class Role(Kind):
    """A role; its id is its name."""

    type = "aws:iam/role:Role"
    inputs = frozenset(
        {
            "name",
            "namePrefix",
            "path",
            "assumeRolePolicy",
            "description",
            "maxSessionDuration",
            "permissionsBoundary",
            "forceDetachPolicies",
            "tags",
        }
    )
    required = frozenset({"assumeRolePolicy"})
    replaces = frozenset({"name", "namePrefix", "path"})
    write_only = frozenset({"namePrefix", "forceDetachPolicies"})
    defaults: ClassVar[Mapping[str, Value]] = {"path": "/", "maxSessionDuration": 3600, "forceDetachPolicies": False}
    autonamed = True
    documents = frozenset({"assumeRolePolicy"})

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs

        def create() -> str:
            answer = api.call(
                "iam",
                "create_role",
                RoleName=inputs["name"],
                Path=inputs["path"],
                AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
                MaxSessionDuration=int(inputs["maxSessionDuration"]),
                Tags=tag_list(creation.tags),
                **present(Description=inputs.get("description"), PermissionsBoundary=inputs.get("permissionsBoundary")),
            )
            return str(answer["Role"]["RoleName"])

        def left() -> str | None:
            role = api.one("iam", "get_role", "Role", RoleName=inputs["name"]) or {}
            return str(role["RoleName"]) if made_by(role.get("Tags"), creation.token) else None

        return find_or_make(create, left, TAKEN)

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        del known
        role = api.one("iam", "get_role", "Role", RoleName=id)
        if role is None:
            return None
        boundary = (role.get("PermissionsBoundary") or {}).get("PermissionsBoundaryArn")
        return {
            "arn": role["Arn"],
            "name": role["RoleName"],
            "path": role["Path"],
            "uniqueId": role["RoleId"],
            "createDate": _date(role),
            "assumeRolePolicy": document(role["AssumeRolePolicyDocument"]),
            "maxSessionDuration": role.get("MaxSessionDuration", 3600),
            **present(description=role.get("Description") or None, permissionsBoundary=boundary),
            **tag_outputs(role.get("Tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        news = change.news
        if "assumeRolePolicy" in change.changed:
            document = news["assumeRolePolicy"]
            api.call("iam", "update_assume_role_policy", RoleName=id, PolicyDocument=document)
        if change.changed & {"description", "maxSessionDuration"}:
            duration = int(news["maxSessionDuration"])
            about = news.get("description", "")
            api.call("iam", "update_role", RoleName=id, Description=about, MaxSessionDuration=duration)
        if "permissionsBoundary" in change.changed:
            if boundary := news.get("permissionsBoundary"):
                api.call("iam", "put_role_permissions_boundary", RoleName=id, PermissionsBoundary=boundary)
            else:
                api.call("iam", "delete_role_permissions_boundary", RoleName=id)
        change_tags(api, "role", {"RoleName": id}, change)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del deadline
        if outputs.get("forceDetachPolicies"):
            attached = api.call("iam", "list_attached_role_policies", RoleName=id)["AttachedPolicies"]
            for policy in attached:
                api.call("iam", "detach_role_policy", RoleName=id, PolicyArn=policy["PolicyArn"])
        api.call("iam", "delete_role", RoleName=id)


class InstanceProfile(Kind):
    """What gives an instance a role; its id is its name."""

    type = "aws:iam/instanceProfile:InstanceProfile"
    inputs = frozenset({"name", "namePrefix", "path", "role", "tags"})
    replaces = frozenset({"name", "namePrefix", "path"})
    defaults: ClassVar[Mapping[str, Value]] = {"path": "/"}
    autonamed = True

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs
        name = inputs["name"]

        def create() -> str:
            tags = tag_list(creation.tags)
            api.call("iam", "create_instance_profile", InstanceProfileName=name, Path=inputs["path"], Tags=tags)
            return str(name)

        def left() -> str | None:
            profile = self._found(api, name) or {}
            return str(name) if made_by(profile.get("Tags"), creation.token) else None

        made = find_or_make(create, left, TAKEN)
        with completing(made):
            self._give_role(api, made, inputs.get("role"))
        return made

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        del known
        profile = self._found(api, id)
        if profile is None:
            return None
        return {
            "arn": profile["Arn"],
            "name": profile["InstanceProfileName"],
            "path": profile["Path"],
            "uniqueId": profile["InstanceProfileId"],
            "createDate": _date(profile),
            **present(role=_role_of(profile)),
            **tag_outputs(profile.get("Tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        if "role" in change.changed:
            self._give_role(api, id, change.news.get("role"))
        change_tags(api, "instance_profile", {"InstanceProfileName": id}, change)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del outputs, deadline
        self._give_role(api, id, None)
        api.call("iam", "delete_instance_profile", InstanceProfileName=id)

    def _found(self, api: Api, name: str) -> dict[str, Any] | None:
        return api.one("iam", "get_instance_profile", "InstanceProfile", InstanceProfileName=name)

    def _give_role(self, api: Api, name: str, role: str | None) -> None:
        now = _role_of(self._found(api, name) or {})
        if now and now != role:
            api.call("iam", "remove_role_from_instance_profile", InstanceProfileName=name, RoleName=now)
        if role and now != role:
            api.call("iam", "add_role_to_instance_profile", InstanceProfileName=name, RoleName=role)


def change_tags(api: Api, noun: str, named: Mapping[str, str], change: Change) -> None:
    """Set the tags of an IAM object to the desired ones."""
    set_tags, gone = tag_changes(change.olds, change.news)
    if set_tags:
        api.call("iam", f"tag_{noun}", Tags=tag_list(set_tags), **named)
    if gone:
        api.call("iam", f"untag_{noun}", TagKeys=gone, **named)


def document(value: Any) -> str:
    """A document as text: botocore has parsed it, unless it was invalid."""
    return value if isinstance(value, str) else json.dumps(value)


def _date(found: dict[str, Any]) -> str:
    return found["CreateDate"].strftime("%Y-%m-%dT%H:%M:%SZ") if "CreateDate" in found else ""


def _role_of(profile: dict[str, Any]) -> str | None:
    roles = profile.get("Roles") or []
    return str(roles[0]["RoleName"]) if roles else None

"""Launch templates, which define how machines are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from local.aws.provider.api import Api, Deadline
from local.aws.provider.ec2 import Ec2Kind, arn
from local.aws.provider.kind import (
    Change,
    Creation,
    camel,
    find_or_make,
    pascal,
    present,
    tag_list,
    tag_outputs,
)
from local.plugins.values import PropertyMap

_DATA: Final = frozenset(
    {
        "blockDeviceMappings",
        "ebsOptimized",
        "iamInstanceProfile",
        "imageId",
        "instanceType",
        "keyName",
        "metadataOptions",
        "monitoring",
        "networkInterfaces",
        "tagSpecifications",
        "userData",
        "vpcSecurityGroupIds",
    }
)
"""The inputs that make up a template's version."""
_SPELLED: Final = {"vpcSecurityGroupIds": "SecurityGroupIds", "securityGroups": "Groups"}


class LaunchTemplate(Ec2Kind):
    """A template with its versions: every change of its data creates a version."""

    type = "aws:ec2/launchTemplate:LaunchTemplate"
    noun, describe, items, ids = (
        "launch-template",
        "describe_launch_templates",
        "LaunchTemplates",
        "LaunchTemplateIds",
    )
    inputs = frozenset({"name", "namePrefix", "description", "updateDefaultVersion", "defaultVersion", "tags", *_DATA})
    replaces = frozenset({"name", "namePrefix"})
    write_only = frozenset({"namePrefix", "updateDefaultVersion"})
    autonamed = True
    moving = frozenset({"latestVersion", "defaultVersion"})

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs

        def create() -> str:
            answer = api.call(
                "ec2",
                "create_launch_template",
                LaunchTemplateName=inputs["name"],
                LaunchTemplateData=_data(inputs),
                TagSpecifications=self.tagged(creation),
                ClientToken=creation.token,
                **present(VersionDescription=inputs.get("description")),
            )
            return str(answer["LaunchTemplate"]["LaunchTemplateId"])

        return find_or_make(create, lambda: self.made_before(api, creation), "InvalidLaunchTemplateName.AlreadyExists")

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        del known
        template = self.found(api, id)
        if template is None:
            return None
        latest = api.one(
            "ec2",
            "describe_launch_template_versions",
            "LaunchTemplateVersions",
            LaunchTemplateId=id,
            Versions=["$Latest"],
        )
        data = (latest or {}).get("LaunchTemplateData", {})
        return {
            "arn": arn(api, {"OwnerId": _account(template)}, "launch-template", id),
            "name": template["LaunchTemplateName"],
            "latestVersion": int(template["LatestVersionNumber"]),
            "defaultVersion": int(template["DefaultVersionNumber"]),
            "region": api.region,
            **present(description=(latest or {}).get("VersionDescription") or None),
            **_properties(data),
            **tag_outputs(template.get("Tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        news = change.news
        if change.changed & {*_DATA, "description"}:
            answer = api.call(
                "ec2",
                "create_launch_template_version",
                LaunchTemplateId=id,
                LaunchTemplateData=_data(news),
                **present(VersionDescription=news.get("description")),
            )
            if news.get("updateDefaultVersion"):
                version = str(answer["LaunchTemplateVersion"]["VersionNumber"])
                api.call("ec2", "modify_launch_template", LaunchTemplateId=id, DefaultVersion=version)
        if "defaultVersion" in change.changed and news.get("defaultVersion"):
            version = str(news["defaultVersion"])
            api.call("ec2", "modify_launch_template", LaunchTemplateId=id, DefaultVersion=version)
        self.change_tags(api, id, change)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del outputs, deadline
        api.call("ec2", "delete_launch_template", LaunchTemplateId=id)


def _data(inputs: PropertyMap) -> dict[str, Any]:
    """The inputs in the form of a template's version."""
    given = {key: inputs[key] for key in _DATA if key in inputs}
    specifications = given.pop("tagSpecifications", None)
    data: dict[str, Any] = pascal(given, _SPELLED)
    if "ebsOptimized" in given:
        data["EbsOptimized"] = str(given["ebsOptimized"]).lower() == "true"
    if specifications:
        data["TagSpecifications"] = [
            {"ResourceType": each["resourceType"], "Tags": tag_list(each.get("tags") or {})} for each in specifications
        ]
    return data


def _properties(data: Mapping[str, Any]) -> PropertyMap:
    """A template's version as outputs."""
    plain = {key: value for key, value in data.items() if key != "TagSpecifications"}
    found: PropertyMap = camel(plain, _SPELLED)
    if specifications := data.get("TagSpecifications"):
        found["tagSpecifications"] = [
            {"resourceType": each["ResourceType"], "tags": {t["Key"]: t["Value"] for t in each.get("Tags", [])}}
            for each in specifications
            # The template's own tags; some answers have them beside those of the machines.
            if each["ResourceType"] != "launch-template"
        ]
    return found


def _account(template: Mapping[str, Any]) -> str:
    """The owner: a template's answer has only its creator."""
    parts = str(template.get("CreatedBy", "")).split(":")
    return parts[4] if len(parts) > 4 else ""

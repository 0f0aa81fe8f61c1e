"""Auto-scaling groups, which keep a desired number of machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from local.aws.provider.api import Api, AwsError, Deadline
from local.aws.provider.kind import (
    TOKEN,
    Change,
    Creation,
    Kind,
    completing,
    pascal,
    present,
)
from local.plugins.provider import ProviderError
from local.plugins.values import PropertyMap, Value

_TRIGGERS: Final = {
    "desired_capacity": "desiredCapacity",
    "health_check_grace_period": "healthCheckGracePeriod",
    "health_check_type": "healthCheckType",
    "max_size": "maxSize",
    "min_size": "minSize",
    "tag": "tags",
    "target_group_arns": "targetGroupArns",
    "vpc_zone_identifier": "vpcZoneIdentifiers",
}
"""The inputs that may start an instance refresh, by their names in pulumi-aws."""


class Group(Kind):
    """An auto-scaling group; its id is its name. A create waits for its machines, a delete for their end."""

    type = "aws:autoscaling/group:Group"
    inputs = frozenset(
        {
            "name",
            "namePrefix",
            "minSize",
            "maxSize",
            "desiredCapacity",
            "vpcZoneIdentifiers",
            "launchTemplate",
            "instanceRefresh",
            "targetGroupArns",
            "healthCheckType",
            "healthCheckGracePeriod",
            "waitForCapacityTimeout",
            "forceDelete",
            "tags",
        }
    )
    required = frozenset({"minSize", "maxSize", "launchTemplate"})
    replaces = frozenset({"name", "namePrefix"})
    write_only = frozenset({"namePrefix", "instanceRefresh", "waitForCapacityTimeout", "forceDelete"})
    defaults: ClassVar[Mapping[str, Value]] = {
        "healthCheckGracePeriod": 300,
        "waitForCapacityTimeout": "10m",
        "forceDelete": False,
    }
    autonamed = True
    # Its tags are a list of objects.
    taggable = False

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs
        name = str(inputs["name"])

        def create() -> str:
            token = _tag(name, TOKEN, creation.token, propagated=False)
            params = {**_settings(inputs), "Tags": [token, *_tags(name, inputs)]}
            if arns := inputs.get("targetGroupArns"):
                params["TargetGroupARNs"] = arns
            api.call("autoscaling", "create_auto_scaling_group", **params)
            return name

        def left() -> str | None:
            found = self._found(api, name) or {}
            ours = any(t["Key"] == TOKEN and t["Value"] == creation.token for t in found.get("Tags", []))
            return name if ours else None

        # Checked first: moto replaces an existing group of the same name.
        made = left() or create()
        with completing(made):
            self._await_machines(api, made, inputs, creation.deadline)
        return made

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        group = self._found(api, id)
        if group is None:
            return None
        template = group.get("LaunchTemplate") or {}
        tags = [
            {"key": t["Key"], "value": t["Value"], "propagateAtLaunch": bool(t.get("PropagateAtLaunch"))}
            for t in group.get("Tags", [])
            if t["Key"] != TOKEN
        ]
        subnets = str(group.get("VPCZoneIdentifier") or "")
        known_template = known.get("launchTemplate") or {}
        by = "name" if "name" in known_template and "id" not in known_template else "id"
        named = {"id": template.get("LaunchTemplateId"), "name": template.get("LaunchTemplateName")}
        return {
            "arn": group.get("AutoScalingGroupARN", ""),
            "name": group["AutoScalingGroupName"],
            "minSize": group["MinSize"],
            "maxSize": group["MaxSize"],
            "desiredCapacity": group["DesiredCapacity"],
            "defaultCooldown": group.get("DefaultCooldown", 300),
            "healthCheckType": group.get("HealthCheckType", "EC2"),
            "healthCheckGracePeriod": group.get("HealthCheckGracePeriod", 300),
            "availabilityZones": sorted(group.get("AvailabilityZones", [])),
            "vpcZoneIdentifiers": sorted(filter(None, subnets.split(","))),
            "launchTemplate": present(**{by: named[by], "version": str(template.get("Version", "$Default"))}),
            "targetGroupArns": group.get("TargetGroupARNs", []),
            "region": api.region,
            **({"tags": tags} if tags else {}),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        olds, news = change.olds, change.news
        settings = {k: v for k, v in news.items() if k in change.changed or k in ("name", "launchTemplate")}
        api.call("autoscaling", "update_auto_scaling_group", **_settings(settings))
        before = {t["key"] for t in olds.get("tags") or []}
        after = {t["key"] for t in news.get("tags") or []}
        if gone := sorted(before - after):
            resource = {"ResourceId": id, "ResourceType": "auto-scaling-group"}
            api.call("autoscaling", "delete_tags", Tags=[{**resource, "Key": key} for key in gone])
        if "tags" in change.changed and after:
            api.call("autoscaling", "create_or_update_tags", Tags=_tags(id, news))
        self._change_target_groups(api, id, change)
        if "instanceRefresh" in news and _replaces_machines(change):
            self._refresh(api, id, news, change.deadline)
        self._await_machines(api, id, news, change.deadline)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        if self._found(api, id) is None:
            return
        force = bool(outputs.get("forceDelete"))
        if not force:
            nothing = {"MinSize": 0, "MaxSize": 0, "DesiredCapacity": 0}
            api.call("autoscaling", "update_auto_scaling_group", AutoScalingGroupName=id, **nothing)
            deadline.until(f"the machines of {id} to end", lambda: not (self._found(api, id) or {}).get("Instances"))
        api.call("autoscaling", "delete_auto_scaling_group", AutoScalingGroupName=id, ForceDelete=force)
        deadline.until(f"{id} to be deleted", lambda: self._found(api, id) is None)

    def _found(self, api: Api, name: str) -> dict[str, Any] | None:
        return api.one("autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups", AutoScalingGroupNames=[name])

    def _await_machines(self, api: Api, name: str, inputs: PropertyMap, deadline: Deadline) -> None:
        if str(inputs.get("waitForCapacityTimeout")) == "0":
            return

        def running() -> bool:
            group = self._found(api, name) or {}
            states = [machine["LifecycleState"] for machine in group.get("Instances", [])]
            return bool(states.count("InService") >= group.get("DesiredCapacity", 0))

        deadline.until(f"the machines of {name} to run", running)

    def _change_target_groups(self, api: Api, id: str, change: Change) -> None:
        before, after = (set(of.get("targetGroupArns") or []) for of in (change.olds, change.news))
        for operation, arns in (("attach", after - before), ("detach", before - after)):
            if arns:
                api.call(
                    "autoscaling",
                    f"{operation}_load_balancer_target_groups",
                    AutoScalingGroupName=id,
                    TargetGroupARNs=sorted(arns),
                )

    def _refresh(self, api: Api, id: str, news: PropertyMap, deadline: Deadline) -> None:
        """Let AWS replace the machines of the older template; as with the real provider, nothing waits for that."""
        refresh = news["instanceRefresh"]
        # Some numbers are strings in pulumi-aws.
        given = (refresh.get("preferences") or {}).items()
        preferences = {k: int(v) if isinstance(v, str) and v.isdigit() else v for k, v in given}
        settings = present(Strategy=refresh.get("strategy"), Preferences=pascal(preferences, {}) or None)
        try:
            api.call("autoscaling", "start_instance_refresh", AutoScalingGroupName=id, **settings)
        except ProviderError as error:
            if isinstance(error, AwsError) and error.code == "InstanceRefreshInProgress":
                deadline.report("an instance refresh is already running, with an older template")
                return
            raise ProviderError(f"{error}; machines of the older template stay until they are terminated") from None


def _replaces_machines(change: Change) -> bool:
    """Whether a change requires the existing machines to be replaced. Raises ProviderError."""
    triggers = change.news["instanceRefresh"].get("triggers") or ()
    if unknown := set(triggers) - _TRIGGERS.keys():
        known = ", ".join(sorted(_TRIGGERS))
        raise ProviderError(f"instanceRefresh.triggers: {', '.join(sorted(unknown))} is invalid (allowed: {known})")
    return not change.changed.isdisjoint({"launchTemplate", *(_TRIGGERS[name] for name in triggers)})


def _settings(inputs: PropertyMap) -> dict[str, Any]:
    template = inputs["launchTemplate"]
    return present(
        AutoScalingGroupName=inputs["name"],
        MinSize=inputs.get("minSize"),
        MaxSize=inputs.get("maxSize"),
        DesiredCapacity=inputs.get("desiredCapacity"),
        VPCZoneIdentifier=",".join(inputs["vpcZoneIdentifiers"]) if inputs.get("vpcZoneIdentifiers") else None,
        LaunchTemplate=present(
            LaunchTemplateId=template.get("id"),
            LaunchTemplateName=template.get("name"),
            Version=str(template.get("version", "$Default")),
        ),
        HealthCheckType=inputs.get("healthCheckType"),
        HealthCheckGracePeriod=inputs.get("healthCheckGracePeriod"),
    )


def _tags(group: str, inputs: PropertyMap) -> list[dict[str, Any]]:
    return [
        _tag(group, t["key"], t["value"], propagated=bool(t["propagateAtLaunch"])) for t in inputs.get("tags") or []
    ]


def _tag(group: str, key: str, value: str, *, propagated: bool) -> dict[str, Any]:
    return {
        "ResourceId": group,
        "ResourceType": "auto-scaling-group",
        "Key": key,
        "Value": str(value),
        "PropagateAtLaunch": propagated,
    }

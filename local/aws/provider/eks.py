"""EKS clusters, whose control plane AWS runs."""

from __future__ import annotations

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
    tag_outputs,
)
from local.plugins.provider import ProviderError
from local.plugins.values import PropertyMap, Value

_LET_IN: Final = "bootstrapClusterCreatorAdminPermissions"
_REACH: Final = {"endpointPublicAccess": True, "endpointPrivateAccess": False, "publicAccessCidrs": None}
"""The endpoint's access where the program does not set it; None: unchanged."""


class Cluster(Kind):
    """A cluster; its id is its name. A create or change waits until it is ACTIVE."""

    type = "aws:eks/cluster:Cluster"
    inputs = frozenset(
        {
            "name",
            "roleArn",
            "version",
            "vpcConfig",
            "accessConfig",
            "kubernetesNetworkConfig",
            "enabledClusterLogTypes",
            "bootstrapSelfManagedAddons",
            "tags",
        }
    )
    required = frozenset({"roleArn", "vpcConfig"})
    replaces = frozenset({"name", "roleArn", "kubernetesNetworkConfig", "bootstrapSelfManagedAddons"})
    defaults: ClassVar[Mapping[str, Value]] = {"bootstrapSelfManagedAddons": True}
    autonamed = True
    write_only = frozenset({"bootstrapSelfManagedAddons"})
    within: ClassVar[Mapping[str, tuple[str, ...]]] = {"vpcConfig": ("clusterSecurityGroupId", "vpcId")}
    moving = frozenset({"platformVersion", "status"})
    timeout = 1800

    def replaced_by(self, olds: PropertyMap, news: PropertyMap) -> frozenset[str]:
        # The creator gets access then, or never.
        before, after = ((of.get("accessConfig") or {}).get(_LET_IN) for of in (olds, news))
        return self.replaces if after in (None, before) else self.replaces | {"accessConfig"}

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs
        name = str(inputs["name"])

        def create() -> str:
            logging = inputs.get("enabledClusterLogTypes")
            params = present(
                name=name,
                roleArn=inputs["roleArn"],
                version=inputs.get("version"),
                resourcesVpcConfig=inputs["vpcConfig"],
                accessConfig=inputs.get("accessConfig"),
                kubernetesNetworkConfig=inputs.get("kubernetesNetworkConfig"),
                bootstrapSelfManagedAddons=inputs["bootstrapSelfManagedAddons"],
                logging={"clusterLogging": [{"types": logging, "enabled": True}]} if logging else None,
                tags=creation.tags,
                clientRequestToken=creation.token,
            )
            return str(api.call("eks", "create_cluster", **params)["cluster"]["name"])

        def left() -> str | None:
            cluster = self._found(api, name) or {}
            return name if made_by(cluster.get("tags"), creation.token) else None

        made = find_or_make(create, left, "ResourceInUse")
        with completing(made):
            self._until_active(api, made, creation.deadline)
        return made

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        cluster = self._found(api, id)
        if cluster is None:
            return None
        logging = (cluster.get("logging") or {}).get("clusterLogging") or []
        created = cluster.get("createdAt")
        access = dict(cluster.get("accessConfig") or {})
        # Write-only at creation: AWS does not return it.
        access |= present(**{_LET_IN: (known.get("accessConfig") or {}).get(_LET_IN)})
        return {
            "arn": cluster["arn"],
            "name": cluster["name"],
            "roleArn": cluster["roleArn"],
            "version": cluster.get("version", ""),
            "platformVersion": cluster.get("platformVersion", ""),
            "status": cluster["status"],
            "createdAt": created.isoformat() if created is not None else "",
            "certificateAuthority": {"data": (cluster.get("certificateAuthority") or {}).get("data", "")},
            "identities": [{"oidcs": [{"issuer": _issuer(cluster)}]}],
            "vpcConfig": cluster.get("resourcesVpcConfig", {}),
            "kubernetesNetworkConfig": cluster.get("kubernetesNetworkConfig") or {},
            "accessConfig": access,
            "enabledClusterLogTypes": sorted(t for each in logging if each.get("enabled") for t in each["types"]),
            "region": api.region,
            **present(endpoint=cluster.get("endpoint")),
            **tag_outputs(cluster.get("tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        news = change.news
        # A failed one cannot be changed.
        self._until_active(api, id, change.deadline)
        if "version" in change.changed and "version" in news:
            api.call("eks", "update_cluster_version", name=id, version=news["version"])
            self._until_active(api, id, change.deadline)
        for params in _config_updates(change):
            api.call("eks", "update_cluster_config", name=id, **params)
            self._until_active(api, id, change.deadline)
        set_tags, gone = tag_changes(change.olds, news)
        arn = str((self._found(api, id) or {}).get("arn"))
        if set_tags:
            api.call("eks", "tag_resource", resourceArn=arn, tags=set_tags)
        if gone:
            api.call("eks", "untag_resource", resourceArn=arn, tagKeys=gone)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del outputs
        api.call("eks", "delete_cluster", name=id)
        deadline.until(f"{id} to be deleted", lambda: self._found(api, id) is None)

    def _found(self, api: Api, name: str) -> dict[str, Any] | None:
        return api.one("eks", "describe_cluster", "cluster", name=name)

    def _until_active(self, api: Api, name: str, deadline: Deadline) -> None:
        def active() -> bool:
            cluster = self._found(api, name) or {}
            if cluster.get("status") == "FAILED":
                issues = (cluster.get("health") or {}).get("issues") or []
                why = "; ".join(str(issue.get("message")) for issue in issues) or "no reason given"
                raise ProviderError(f"AWS could not create {name} (status FAILED): {why}")
            return bool(cluster.get("status") == "ACTIVE")

        deadline.until(f"{name} to be ACTIVE", active)


def _config_updates(change: Change) -> list[dict[str, Any]]:
    """What AWS changes in separate calls: the endpoint's access, its interfaces, access entries, logs."""
    news, olds = change.news, change.olds
    updates: list[dict[str, Any]] = []
    if "vpcConfig" in change.changed:
        new, old = news["vpcConfig"], olds["vpcConfig"]
        changed = {k for k in {*new, *old} if new.get(k, _REACH.get(k)) != old.get(k)}
        if reach := present(**{k: new.get(k, usual) for k, usual in _REACH.items() if k in changed}):
            updates.append({"resourcesVpcConfig": reach})
        if changed - _REACH.keys():
            places = {k: new[k] for k in ("subnetIds", "securityGroupIds") if k in new}
            updates.append({"resourcesVpcConfig": places})
    before, mode = ((of.get("accessConfig") or {}).get("authenticationMode") for of in (olds, news))
    if mode not in (None, before):
        updates.append({"accessConfig": {"authenticationMode": mode}})
    if "enabledClusterLogTypes" in change.changed:
        wanted, had = (set(of.get("enabledClusterLogTypes") or []) for of in (news, olds))
        setups = [{"types": sorted(types), "enabled": on} for types, on in ((wanted, True), (had - wanted, False))]
        updates.append({"logging": {"clusterLogging": [setup for setup in setups if setup["types"]]}})
    return updates


def _issuer(cluster: dict[str, Any]) -> str:
    return str(((cluster.get("identity") or {}).get("oidc") or {}).get("issuer", ""))

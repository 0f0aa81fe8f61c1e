# ruff: noqa: N802, N803, ARG002 - methods and parameters have the names of the API
"""A client of an account in memory, with as much of NLB as the tests of single changes need.

Jobs take as many looks as `job_looks` says, and fail for actions in `failing`. `refuse` makes an action fail once.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from cloud_controller.clouds.alicloud.errors import Refusal, translated

Object = dict[str, Any]


def refusal(code: str, action: str) -> Exception:
    cause = Refusal(code, f"refused: {code}", 400, "request-1")
    error = translated(cause, f"nlb {action}")
    error.__cause__ = cause
    return error


class ScriptedNlb:
    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.lbs: dict[str, Object] = {}
        self.listeners: dict[str, Object] = {}
        self.groups: dict[str, Object] = {}
        self.servers: dict[str, list[Object]] = {}
        self.certificates: dict[str, list[str]] = {}
        self.security_groups: dict[str, Object] = {}
        self.enis: dict[str, str] = {}
        self.tokens: dict[str, Object] = {}
        self.jobs: dict[str, list[Any]] = {}
        self.calls: list[tuple[str, Object]] = []
        self.job_looks = 0
        self.provisioning_looks = 0
        self.failing: set[str] = set()
        self.refuse: dict[str, list[str]] = {}
        self.unhealthy: list[Object] = []

    # ------------------------------------------------------------------------------------------------- the client

    def call(self, product: str, action: str, parameters: Mapping[str, Any]) -> Object:
        given = {key: value for key, value in parameters.items() if value is not None}
        self.calls.append((action, given))
        if self.refuse.get(action):
            raise refusal(self.refuse[action].pop(0), action)
        token = given.pop("ClientToken", None)
        if token in self.tokens:
            return self.tokens[token]
        answer: Object = getattr(self, action)(**given) or {}
        if token:
            self.tokens[token] = answer
        return answer

    def pages(self, product: str, action: str, parameters: Mapping[str, Any], path: str) -> Iterator[Object]:
        found: Any = self.call(product, action, parameters)
        for name in path.split("."):
            found = found[name]
        yield from found

    def counts(self) -> Counter[str]:
        """The calls since the last count."""
        found = Counter(action for action, _ in self.calls)
        self.calls.clear()
        return found

    def sent(self, action: str) -> Object:
        """The parameters of the last call of an action."""
        return next(given for name, given in reversed(self.calls) if name == action)

    # ----------------------------------------------------------------------------------------------------- helpers

    def _id(self, prefix: str) -> str:
        return f"{prefix}-{next(self.numbers):04}"

    def _job(self, action: str) -> Object:
        job = self._id("job")
        self.jobs[job] = [self.job_looks, "Failed" if action in self.failing else "Succeeded"]
        return {"JobId": job}

    @staticmethod
    def _tagged(objects: dict[str, Object], tags: list[Object]) -> list[Object]:
        return [each for each in objects.values() if all(tag in each["Tags"] for tag in tags)]

    def _existing(self, objects: dict[str, Object], id: str, action: str) -> Object:
        if id not in objects:
            raise refusal("ResourceNotFound", action)
        return objects[id]

    # ----------------------------------------------------------------------------------------------- load balancers

    def CreateLoadBalancer(self, **given: Any) -> Object:
        lb_id = self._id("nlb")
        self.lbs[lb_id] = {
            **given,
            "LoadBalancerId": lb_id,
            "LoadBalancerStatus": "Active",
            "looks": self.provisioning_looks,
            "ZoneMappings": self._zones(given["ZoneMappings"]),
            "DNSName": f"{lb_id}.example.com",
            "CrossZoneEnabled": True,
            "SecurityGroupIds": [],
            "Tags": given["Tag"],
            "CreateTime": "2026-11-23T00:00:00Z",
        }
        return {"LoadbalancerId": lb_id}

    def _shown(self, lb: Object) -> Object:
        if lb["looks"]:
            lb["looks"] -= 1
            return {**lb, "LoadBalancerStatus": "Provisioning"}
        return lb

    def GetLoadBalancerAttribute(self, LoadBalancerId: str) -> Object:
        return self._shown(self._existing(self.lbs, LoadBalancerId, "GetLoadBalancerAttribute"))

    def ListLoadBalancers(
        self, MaxResults: int, Tag: list[Object] | None = None, LoadBalancerIds: list[str] | None = None
    ) -> Object:
        found = self._tagged(self.lbs, Tag or [])
        return {
            "LoadBalancers": [
                self._shown(lb) for lb in found if LoadBalancerIds is None or lb["LoadBalancerId"] in LoadBalancerIds
            ]
        }

    def _put(self, LoadBalancerId: str, **given: Any) -> Object:
        self.lbs[LoadBalancerId] |= given
        return self._job("")

    UpdateLoadBalancerAttribute = _put

    def UpdateLoadBalancerZones(self, LoadBalancerId: str, ZoneMappings: list[Object]) -> Object:
        return self._put(LoadBalancerId, ZoneMappings=self._zones(ZoneMappings))

    def UpdateLoadBalancerAddressTypeConfig(
        self, LoadBalancerId: str, AddressType: str, ZoneMappings: list[Object] | None = None
    ) -> Object:
        return self._put(LoadBalancerId, AddressType=AddressType)

    @staticmethod
    def _zones(mappings: list[Object]) -> list[Object]:
        usual = {"PrivateIPv4Address": "192.168.0.1", "AllocationId": "eip-of-the-cloud"}
        return [
            {**each, "LoadBalancerAddresses": [{key: each.get(key, usual[key]) for key in usual}]} for each in mappings
        ]

    def UpdateLoadBalancerProtection(self, LoadBalancerId: str, **given: Any) -> None:
        if "DeletionProtectionEnabled" in given:
            self.lbs[LoadBalancerId]["DeletionProtectionConfig"] = {"Enabled": given["DeletionProtectionEnabled"]}
        if "ModificationProtectionStatus" in given:
            self.lbs[LoadBalancerId]["ModificationProtectionConfig"] = {"Status": given["ModificationProtectionStatus"]}

    def EnableLoadBalancerIpv6Internet(self, LoadBalancerId: str) -> None:
        self._put(LoadBalancerId, Ipv6AddressType="Internet")

    def DisableLoadBalancerIpv6Internet(self, LoadBalancerId: str) -> None:
        self._put(LoadBalancerId, Ipv6AddressType="Intranet")

    def AttachCommonBandwidthPackageToLoadBalancer(self, LoadBalancerId: str, BandwidthPackageId: str) -> Object:
        return self._put(LoadBalancerId, BandwidthPackageId=BandwidthPackageId)

    def DetachCommonBandwidthPackageFromLoadBalancer(self, LoadBalancerId: str, BandwidthPackageId: str) -> Object:
        assert self.lbs[LoadBalancerId].pop("BandwidthPackageId") == BandwidthPackageId
        return self._job("")

    def LoadBalancerJoinSecurityGroup(self, LoadBalancerId: str, SecurityGroupIds: list[str]) -> Object:
        self.lbs[LoadBalancerId]["SecurityGroupIds"] += SecurityGroupIds
        return self._job("")

    def LoadBalancerLeaveSecurityGroup(self, LoadBalancerId: str, SecurityGroupIds: list[str]) -> Object:
        for each in SecurityGroupIds:
            self.lbs[LoadBalancerId]["SecurityGroupIds"].remove(each)
        return self._job("")

    def DeleteLoadBalancer(self, LoadBalancerId: str) -> Object:
        if self._existing(self.lbs, LoadBalancerId, "DeleteLoadBalancer")["DeletionProtectionConfig"]["Enabled"]:
            raise refusal("OperationDenied.DeletionProtection", "DeleteLoadBalancer")
        del self.lbs[LoadBalancerId]
        self.listeners = {k: v for k, v in self.listeners.items() if v["LoadBalancerId"] != LoadBalancerId}
        return self._job("DeleteLoadBalancer")

    # ---------------------------------------------------------------------------------------- jobs, tags, listeners

    def ListAsynJobs(self, JobIds: list[str]) -> Object:
        found = []
        for job in JobIds:
            looks, status = self.jobs[job]
            self.jobs[job][0] = max(0, looks - 1)
            found.append({"Id": job, "Status": "Processing" if looks else status})
        return {"Jobs": found}

    def _any(self, id: str) -> Object:
        return next(of[id] for of in (self.lbs, self.groups, self.listeners) if id in of)

    def TagResources(self, ResourceType: str, ResourceId: list[str], Tag: list[Object]) -> None:
        for each in ResourceId:
            keys = {tag["Key"] for tag in Tag}
            self._any(each)["Tags"] = [*(t for t in self._any(each)["Tags"] if t["Key"] not in keys), *Tag]

    def UntagResources(self, ResourceType: str, ResourceId: list[str], TagKey: list[str]) -> None:
        for each in ResourceId:
            self._any(each)["Tags"] = [t for t in self._any(each)["Tags"] if t["Key"] not in TagKey]

    def CreateListener(self, Tag: list[Object], **given: Any) -> Object:
        ports = (given["ListenerPort"], given.get("StartPort"), given["ListenerProtocol"] == "UDP")
        taken = {
            (each["ListenerPort"], each.get("StartPort"), each["ListenerProtocol"] == "UDP")
            for each in self.listeners.values()
            if each["LoadBalancerId"] == given["LoadBalancerId"]
        }
        if ports in taken:
            raise refusal("ResourceAlreadyExist.Listener", "CreateListener")
        listener_id = self._id("lsn")
        self.listeners[listener_id] = {**given, "ListenerId": listener_id, "Tags": Tag, "ListenerStatus": "Running"}
        return {"ListenerId": listener_id, **self._job("CreateListener")}

    def UpdateListenerAttribute(self, ListenerId: str, **given: Any) -> Object:
        self.listeners[ListenerId] |= given
        return self._job("UpdateListenerAttribute")

    def StartListener(self, ListenerId: str) -> Object:
        self.listeners[ListenerId]["ListenerStatus"] = "Running"
        return self._job("StartListener")

    def DeleteListener(self, ListenerId: str) -> Object:
        self._existing(self.listeners, ListenerId, "DeleteListener")
        del self.listeners[ListenerId]
        return self._job("DeleteListener")

    def ListListeners(self, LoadBalancerIds: list[str], MaxResults: int) -> Object:
        return {"Listeners": [each for each in self.listeners.values() if each["LoadBalancerId"] in LoadBalancerIds]}

    def ListListenerCertificates(self, ListenerId: str, CertType: str, MaxResults: int) -> Object:
        default = [{"CertificateId": each, "IsDefault": True} for each in self.listeners[ListenerId]["CertificateIds"]]
        more = [{"CertificateId": each, "IsDefault": False} for each in self.certificates.get(ListenerId, ())]
        return {"Certificates": [*default, *more]}

    def AssociateAdditionalCertificatesWithListener(
        self, ListenerId: str, AdditionalCertificateIds: list[str]
    ) -> Object:
        self.certificates.setdefault(ListenerId, []).extend(AdditionalCertificateIds)
        return self._job("Associate")

    def DisassociateAdditionalCertificatesWithListener(
        self, ListenerId: str, AdditionalCertificateIds: list[str]
    ) -> Object:
        for each in AdditionalCertificateIds:
            self.certificates[ListenerId].remove(each)
        return self._job("Disassociate")

    def GetListenerHealthStatus(self, ListenerId: str) -> Object:
        group = self.listeners[ListenerId]["ServerGroupId"]
        infos = [{"ServerGroupId": group, "NonNormalServers": self.unhealthy}]
        return {"ListenerHealthStatus": [{"ListenerId": ListenerId, "ServerGroupInfos": infos}]}

    # ------------------------------------------------------------------------------------------------ server groups

    def CreateServerGroup(self, Tag: list[Object], HealthCheckConfig: Object, **given: Any) -> Object:
        group_id = self._id("sgp")
        self.groups[group_id] = {**given, "ServerGroupId": group_id, "Tags": Tag, "HealthCheck": HealthCheckConfig}
        self.servers[group_id] = []
        return {"ServerGroupId": group_id, **self._job("CreateServerGroup")}

    def UpdateServerGroupAttribute(self, ServerGroupId: str, HealthCheckConfig: Object, **given: Any) -> Object:
        self.groups[ServerGroupId] |= {**given, "HealthCheck": HealthCheckConfig}
        return self._job("UpdateServerGroupAttribute")

    def DeleteServerGroup(self, ServerGroupId: str) -> Object:
        self._existing(self.groups, ServerGroupId, "DeleteServerGroup")
        if any(each["ServerGroupId"] == ServerGroupId for each in self.listeners.values()):
            raise refusal("ResourceInUse.serverGroup", "DeleteServerGroup")
        del self.groups[ServerGroupId], self.servers[ServerGroupId]
        return self._job("DeleteServerGroup")

    def ListServerGroups(
        self, MaxResults: int, Tag: list[Object] | None = None, ServerGroupIds: list[str] | None = None
    ) -> Object:
        found = self._tagged(self.groups, Tag or [])
        return {
            "ServerGroups": [
                {**each, "ServerCount": len(self.servers[each["ServerGroupId"]])}
                for each in found
                if ServerGroupIds is None or each["ServerGroupId"] in ServerGroupIds
            ]
        }

    def ListServerGroupServers(self, ServerGroupId: str, MaxResults: int) -> Object:
        return {"Servers": [*self.servers[ServerGroupId]]}

    @staticmethod
    def _server(server: Object) -> Object:
        return {key: server.get(key) for key in ("ServerId", "ServerIp", "ServerType", "Port")}

    def AddServersToServerGroup(self, ServerGroupId: str, Servers: list[Object]) -> Object:
        job = self._job("AddServersToServerGroup")
        if self.jobs[job["JobId"]][1] == "Succeeded":
            self.servers[ServerGroupId] += [dict(each) for each in Servers]
        return job

    def UpdateServerGroupServersAttribute(self, ServerGroupId: str, Servers: list[Object]) -> Object:
        for each in Servers:
            for server in self.servers[ServerGroupId]:
                if self._server(server) == self._server(each):
                    server["Weight"] = each["Weight"]
        return self._job("UpdateServerGroupServersAttribute")

    def RemoveServersFromServerGroup(self, ServerGroupId: str, Servers: list[Object]) -> Object:
        gone = [self._server(each) for each in Servers]
        rest = [each for each in self.servers[ServerGroupId] if self._server(each) not in gone]
        self.servers[ServerGroupId] = rest
        return self._job("RemoveServersFromServerGroup")

    # --------------------------------------------------------------------------------------------------------- ECS

    def DescribeNetworkInterfaces(self, PrivateIpAddress: list[str], Status: str, MaxResults: int) -> Object:
        found = [
            {
                "NetworkInterfaceId": self.enis[address],
                "PrivateIpSets": {"PrivateIpSet": [{"PrivateIpAddress": address}]},
            }
            for address in PrivateIpAddress
            if address in self.enis
        ]
        return {"NetworkInterfaceSets": {"NetworkInterfaceSet": found}}

    def CreateSecurityGroup(self, Tag: list[Object], **given: Any) -> Object:
        group_id = self._id("sg")
        self.security_groups[group_id] = {**given, "SecurityGroupId": group_id, "Tags": Tag, "rules": []}
        return {"SecurityGroupId": group_id}

    def DescribeSecurityGroups(self, VpcId: str, Tag: list[Object], MaxResults: int) -> Object:
        return {"SecurityGroups": {"SecurityGroup": self._tagged(self.security_groups, Tag)}}

    def DescribeSecurityGroupAttribute(self, SecurityGroupId: str, Direction: str, MaxResults: int) -> Object:
        return {"Permissions": {"Permission": self.security_groups[SecurityGroupId]["rules"]}}

    def AuthorizeSecurityGroup(self, SecurityGroupId: str, Permissions: list[Object]) -> None:
        self.security_groups[SecurityGroupId]["rules"] += Permissions

    def RevokeSecurityGroup(self, SecurityGroupId: str, Permissions: list[Object]) -> None:
        for each in Permissions:
            self.security_groups[SecurityGroupId]["rules"].remove(each)

    def DeleteSecurityGroup(self, SecurityGroupId: str) -> None:
        if any(SecurityGroupId in lb["SecurityGroupIds"] for lb in self.lbs.values()):
            raise refusal("DependencyViolation", "DeleteSecurityGroup")
        del self.security_groups[SecurityGroupId]

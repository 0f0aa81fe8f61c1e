"""Whether a process calls AWS with the CCM's credentials, as far as STS, the CCM's pods and its machines show."""

from __future__ import annotations

import re
from collections.abc import Collection

from cloud_controller.cloud import CcmPods
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.provider_ids import instance_id

_CALLER = re.compile(r"arn:[^:]+:sts::(?P<account>\d+):assumed-role/(?P<role>[^/]+)/(?P<session>[^/]+)")
_ROLE = re.compile(r"arn:[^:]+:iam::(?P<account>\d+):role/(?:.*/)?(?P<role>[^/]+)")

_ROLE_OF_POD = ("AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE")
_OTHER_SOURCES = re.compile(
    "AWS_(ACCESS_KEY_ID|(DEFAULT_)?PROFILE|CONFIG_FILE|SHARED_CREDENTIALS_FILE|CONTAINER_CREDENTIALS_.*)"
)
"""Variables that lead to credentials whose role, if they have one, cannot be seen from outside the pod."""


def other_than_ccm(api: Api, pods: CcmPods | None) -> str | None:
    """Why this process may not have the CCM's credentials, as a clause; None if it has them.

    In the order of AWS's SDKs: the role in the cloud config, the pod's own role, the machine's.
    """
    arn = str(api.call("sts", "GetCallerIdentity")["Arn"])
    caller = f"doctor calls AWS as {arn}"
    called = _CALLER.fullmatch(arn)
    if api.config.role_arn is None:
        if pods is None:
            return f"{caller}, and no pod shows which credentials the CCM has"
        hidden = {name for name in pods.environment if _OTHER_SOURCES.fullmatch(name)}
        hidden |= {name for name in _ROLE_OF_POD if pods.environment.get(name, "") is None}
        if hidden:
            return f"{caller}, and the CCM has credentials that its pods do not show ({', '.join(sorted(hidden))})"
    role = api.config.role_arn or _role_of(pods)
    if role is not None:
        wanted = _ROLE.fullmatch(role)
        same = called and wanted and called.group("account", "role") == wanted.group("account", "role")
        return None if same else f"{caller}, and the CCM as {role}"
    machines = {instance_id(each) or each for each in pods.machines} if pods else set()
    if not machines:
        return f"{caller}, and the CCM has its machine's role, but no pod of it is on a node"
    # AWS names the session of a machine's role after the machine.
    if called and _share_a_role(api, {called["session"], *machines}):
        return None
    return f"{caller}, and the CCM has its machine's role"


def _role_of(pods: CcmPods | None) -> str | None:
    role, token = (pods.environment.get(name) if pods else None for name in _ROLE_OF_POD)
    return role if token else None


def _share_a_role(api: Api, ids: Collection[str]) -> bool:
    """Whether all these instances exist and have the same instance profile."""
    filters = [{"Name": "instance-id", "Values": sorted(ids)}]
    profiles = [
        (instance.get("IamInstanceProfile") or {}).get("Arn")
        for reservation in api.pages("ec2", "DescribeInstances", "Reservations", Filters=filters)
        for instance in reservation["Instances"]
    ]
    return len(profiles) == len(ids) and None not in profiles and len({*profiles}) == 1

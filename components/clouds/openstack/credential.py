"""The CCM's application credential, which allows the requests of its controllers and nothing else."""

from __future__ import annotations

import pulumi
import pulumi_openstack as openstack

from cloud_controller import manifests
from cloud_controller.clouds.openstack.permissions import access_rules

from .settings import DEFAULT_ROLES, OpenstackClusterArgs


def make(name: str, settings: OpenstackClusterArgs, opts: pulumi.ResourceOptions) -> dict[str, pulumi.Output[str]]:
    """Its id and its secret, which Keystone generates.

    Another day of expiry makes another credential; the old one goes once the CCM has the new one. So it is not
    protected, and Pulumi generates the name: Keystone refuses two of one name.
    """
    day = settings.get("credential_expires")
    credential = openstack.identity.ApplicationCredential(
        f"{name}-{manifests.NAME}",
        description=f"Cloud controller manager of {name}",
        roles=list(settings.get("credential_roles", DEFAULT_ROLES)),
        access_rules=[
            {"service": rule["service"], "method": rule["method"], "path": rule["path"]}
            for rule in access_rules(settings.get("controllers", ()))
        ],
        expires_at=f"{day}T23:59:59Z" if day else None,
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(protect=False)),
    )
    return {"credential_id": credential.id, "credential_secret": pulumi.Output.secret(credential.secret)}

"""How a dynamic provider reaches AWS: by the stack's config, and by the credentials of its environment.

Import-light, because every dynamic provider imports it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cloud_controller.cloud import InvalidConfiguration

if TYPE_CHECKING:
    from pulumi.dynamic.config import Config

    from cloud_controller.clouds.aws.config import ServiceOverride

KUBECONFIG = "kubeconfig"
"""The last part of the name of the parameter that holds an administrator's kubeconfig of a control plane on EC2."""


def parameter_name(cluster_id: str, key: str) -> str:
    """The full name of a cluster's parameter. It never begins with the cluster's own: AWS keeps `/aws…` and `/ssm…`."""
    return f"/cloud-controller/{cluster_id}/{key}"


def cloud_config(config: Config, cluster_id: str, network_id: str) -> str:
    """The text of the cloud config for a cluster. Raises InvalidConfiguration without a region."""
    from cloud_controller.clouds.aws.config import Config as CloudConfig
    from cloud_controller.clouds.aws.config import render

    settings = _settings(config)
    region = settings["region"]
    others = overrides(settings.get("endpoint"), region)
    existing = settings.get("existing") or {}
    return render(
        CloudConfig(
            cluster_id=cluster_id,
            vpc_id=network_id,
            subnet_id=existing.get("subnetId"),
            route_table_id=existing.get("routeTableId"),
            elb_security_group=existing.get("securityGroupId"),
            region=region,
            serve_nlb_class=bool(settings.get("serveNlbClass")),
            overrides=others,
        )
    )


def kubeconfig(config: Config, cluster_id: str) -> str | None:
    """An administrator's, where the cluster's machines run the control plane; None: EKS gives access itself.

    Raises CloudError.
    """
    settings = _settings(config)
    if settings.get("controlPlane") != "ec2":
        return None
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    from cloud_controller.clouds.aws.errors import translated

    name = parameter_name(cluster_id, KUBECONFIG)
    # A session of its own: boto3's default one keeps the first credentials of the process for ever.
    session = boto3.Session(region_name=settings["region"])
    client = session.client("ssm", endpoint_url=settings.get("endpoint"))
    try:
        found = client.get_parameter(Name=name, WithDecryption=True)
    except (BotoCoreError, ClientError) as error:
        raise translated(error, "ssm", f"GetParameter {name}") from error
    return str(found["Parameter"]["Value"])


def overrides(endpoint: str | None, region: str) -> tuple[ServiceOverride, ...]:
    """Every service at one endpoint, that of a simulator; none without one."""
    from cloud_controller.clouds.aws.config import SERVICES, ServiceOverride

    if endpoint is None:
        return ()
    return tuple(
        ServiceOverride(service=service, url=endpoint, region=region, signing_region=region) for service in SERVICES
    )


def _settings(config: Config) -> dict[str, Any]:
    """The config's section `aws`, which the engine hands over as JSON text."""
    settings = config.get("aws")
    if isinstance(settings, str):
        settings = json.loads(settings)
    if not isinstance(settings, dict) or not settings.get("region"):
        raise InvalidConfiguration("aws", "the stack's config has no region", "{region: such as eu-central-1}")
    return settings

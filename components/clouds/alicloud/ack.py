"""A control plane that Alibaba Cloud runs (ACK), and what its nodes and our CCM need to be let in.

ACK runs its own CCM, so ours serves only its own classes there (`adapter.manager_settings`).
"""

from __future__ import annotations

import pulumi
import pulumi_alicloud as alicloud

from ..common.dependencies import with_what_it_needs
from ..interface import ClusterParts, NetworkParts
from . import audit, ram, security_groups
from .network import machine_ranges
from .settings import DEFAULT_SERVICE_CIDR, DOCTOR_ON_ACK, NAME_ON_ACK, AlicloudClusterArgs, tags

SPECIFICATION = "ack.pro.small"
"""The managed control plane with a service level; `ack.standard` has none."""
_LOGGED = ["apiserver", "kcm", "scheduler", "ccm"]
DEFAULT_LOG_DAYS = 30
PROVIDER_VARIABLE = "ALIBABA_CLOUD_OIDC_PROVIDER_ARN"


def make(name: str, network: NetworkParts, settings: AlicloudClusterArgs, opts: pulumi.ResourceOptions) -> ClusterParts:
    """The ACK cluster, its nodes' security group, and the role of the CCM's ServiceAccount."""
    pod_cidr = settings.get("pod_cidr")
    group = security_groups.of_nodes(name, network.id, machine_ranges(network, settings), pod_cidr, opts).id
    cluster = alicloud.cs.ManagedKubernetes(
        name,
        name=name,
        cluster_spec=SPECIFICATION,
        version=settings["kubernetes_version"],
        vswitch_ids=list(network.subnet_ids.values()),
        # Without pod routes, pods have addresses of their own vSwitches (Terway).
        pod_vswitch_ids=list(network.frontend_subnet_ids.values()) or None,
        pod_cidr=pod_cidr,
        service_cidr=settings.get("service_cidr", DEFAULT_SERVICE_CIDR),
        security_group_id=group,
        # The program makes the way out itself.
        new_nat_gateway=False,
        slb_internet_enabled=settings.get("public_api", False),
        # The OIDC issuer by which RAM believes the tokens of ServiceAccounts.
        enable_rrsa=True,
        addons=[
            # Only Terway knows NetworkPolicies.
            {"name": "flannel"} if pod_cidr else {"name": "terway-eniip", "config": '{"NetworkPolicy":"true"}'},
            {"name": "csi-plugin"},
            {"name": "managed-csiprovisioner"},
            # It would make a load balancer of its own.
            {"name": "nginx-ingress-controller", "disabled": True},
        ],
        control_plane_log_components=_LOGGED,
        control_plane_log_ttl=str(settings.get("log_days", DEFAULT_LOG_DAYS)),
        # An administrator's key has no place in the outputs.
        skip_set_certificate_authority=True,
        tags=tags(name),
        # It counts only at creation: what ACK adds later is not taken away.
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(ignore_changes=["addons"])),
    )
    if "audit_days" in settings:
        audit.make(name, settings["audit_days"], opts)
    join: dict[str, pulumi.Input[str]] = {
        "control_plane": "ack",
        "region": settings["region"],
        "node_security_group_id": group,
        **{f"most/{pool}": str(most) for pool, most in settings.get("autoscaling", {}).items()},
    }
    provider = cluster.rrsa_metadata.apply(lambda of: of.ram_oidc_provider_arn or "")
    issuer = cluster.rrsa_metadata.apply(lambda of: of.rrsa_oidc_issuer_url or "")
    role = of_doctor = None
    if controllers := settings.get("controllers"):
        oidc, region = ram.OidcProvider(provider, issuer), settings["region"]
        role = ram.role_of_account(name, oidc, NAME_ON_ACK, region, controllers, opts)
        if settings.get("doctor"):
            of_doctor = ram.role_of_account(name, oidc, DOCTOR_ON_ACK, region, controllers, opts, reads=True)
    return ClusterParts(
        cluster.id,
        _kubeconfig(cluster),
        cluster,
        join,
        role,
        {PROVIDER_VARIABLE: provider},
        of_doctor,
    )


def _kubeconfig(cluster: alicloud.cs.ManagedKubernetes) -> pulumi.Output[str]:
    """An administrator's, read in each run: its client certificate is valid for years, and is in no output of ACK's."""
    found = alicloud.cs.get_cluster_credential_output(cluster_id=cluster.id, opts=pulumi.InvokeOptions(parent=cluster))
    # What a function returns does not depend on what made its arguments, as far as the SDK knows.
    return with_what_it_needs(pulumi.Output.secret(found.kube_config), [cluster])

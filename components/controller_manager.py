"""The cloud controller manager (CCM) in its cluster: identity, rights, cloud config and the daemon itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NotRequired

import pulumi
from pulumi_kubernetes.apps.v1 import DaemonSet, Deployment
from pulumi_kubernetes.core.v1 import PodTemplateSpecArgsDict, Secret, ServiceAccount
from pulumi_kubernetes.meta.v1 import LabelSelectorArgsDict, ObjectMetaArgsDict
from pulumi_kubernetes.policy.v1 import PodDisruptionBudget
from pulumi_kubernetes.rbac.v1 import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRuleArgsDict,
    Role,
    RoleBinding,
    SubjectArgsDict,
)

from cloud_controller import rbac
from cloud_controller.cloud import InvalidConfiguration

from . import clouds, inputs, manager_pod
from .arguments import checked
from .manager_pod import CONFIG_DIRECTORY, CONFIG_FILE, SECURE_PORT

NAME = "cloud-controller-manager"
NAMESPACE = rbac.LEASE_NAMESPACE
REPLICAS = 2
"""On workers: one leads, the other takes over."""


class CloudControllerManagerArgs(clouds.ManagerSettings):
    """Arguments of `CloudControllerManager`."""

    cloud: str
    """The cloud that it joins the cluster to."""
    cluster_name: pulumi.Input[str]
    """For people; the cluster's id stands in the cloud config."""
    cluster_cidr: pulumi.Input[str]
    """The range of which every node gets a part for its pods."""
    cloud_config: pulumi.Input[str]
    """The text of the cloud config; kept secret."""
    controllers: Sequence[str]
    """The controllers that the daemon runs; its rights follow from them."""
    machines: NotRequired[int]
    """How many control-plane machines there are, each of which runs one; with two or more, evictions are budgeted.

    0: the cloud runs the control plane, and two run on workers."""


class CloudControllerManager(pulumi.ComponentResource):
    """A DaemonSet on the control-plane nodes, in kube-system, with the rights of its controllers and no more.

    Where the cloud runs the control plane it has no nodes; then it is a Deployment on workers.

    Where the daemon runs controller `volume`, the cloud's StorageClass and CSIDriver come with it.

    Of several instances one leads (a Lease). A changed cloud config restarts them, one after another.
    """

    @inputs.naming_itself
    def __init__(self, name: str, args: CloudControllerManagerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        args = checked(CloudControllerManagerArgs, args)
        adapter = clouds.adapter(args["cloud"])
        inputs.check_cidr("cluster_cidr", args["cluster_cidr"])
        machines = args.get("machines", 1)
        inputs.check("machines", machines, "an integer of at least 0", lambda v: v >= 0)
        daemon, rules = _daemon(args, adapter)
        identity = adapter.identity(args["role"], manager_pod.TOKEN_FILE) if "role" in args else None
        cloud_config = pulumi.Output.secret(args["cloud_config"])
        super().__init__(
            "cloudcontroller:index:CloudControllerManager", name, {**args, "cloud_config": cloud_config}, opts
        )
        child = pulumi.ResourceOptions(parent=self)
        metadata: ObjectMetaArgsDict = {"name": NAME, "namespace": NAMESPACE, "labels": {"k8s-app": NAME}}
        subject: SubjectArgsDict = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}

        account = ServiceAccount(
            name,
            metadata={**metadata, "annotations": identity.annotations} if identity else metadata,
            opts=child,
        )
        # The names of cluster-wide roles begin with `system:` as those of Kubernetes' own components do.
        cluster_role = ClusterRole(
            name,
            metadata={"name": f"system:{NAME}", "labels": {"k8s-app": NAME}},
            rules=[_rule(rule) for rule in rules.cluster],
            opts=child,
        )
        cluster_binding = ClusterRoleBinding(
            name,
            metadata={"name": f"system:{NAME}", "labels": {"k8s-app": NAME}},
            role_ref={"api_group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"system:{NAME}"},
            subjects=[subject],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[cluster_role]),
        )
        role = Role(name, metadata=metadata, rules=[_rule(rule) for rule in rules.namespaced], opts=child)
        binding = RoleBinding(
            name,
            metadata=metadata,
            role_ref={"api_group": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
            subjects=[subject],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )
        config = Secret(
            f"{name}-config",
            metadata={"name": f"{NAME}-config", "namespace": NAMESPACE, "labels": {"k8s-app": NAME}},
            type="Opaque",
            string_data={CONFIG_FILE: cloud_config},
            opts=child,
        )
        # A digest is no secret: without unsecret, previews would hide whether the config changed.
        checksum = pulumi.Output.unsecret(cloud_config.apply(lambda text: hashlib.sha256(text.encode()).hexdigest()))
        template: PodTemplateSpecArgsDict = {
            "metadata": {
                "labels": {"k8s-app": NAME},
                "annotations": {
                    "checksum/cloud-config": checksum,
                    "prometheus.io/scrape": "true",
                    "prometheus.io/port": str(SECURE_PORT),
                    "prometheus.io/path": "/metrics",
                    "prometheus.io/scheme": "https",
                },
            },
            "spec": manager_pod.pod(
                NAME,
                daemon,
                config_secret=f"{NAME}-config",
                on_control_plane=machines > 0,
                identity=identity,
                environment=args.get("environment", {}),
            ),
        }
        selector: LabelSelectorArgsDict = {"match_labels": {"k8s-app": NAME}}
        # One at a time, none beyond their number: a second one on a machine would find its port taken.
        rolling: Any = {"type": "RollingUpdate", "rolling_update": {"max_unavailable": 1}}
        waits = pulumi.ResourceOptions(parent=self, depends_on=[account, cluster_binding, binding, config])
        if machines > 0:
            DaemonSet(
                name,
                metadata=metadata,
                spec={"selector": selector, "update_strategy": rolling, "template": template},
                opts=waits,
            )
        else:
            rolling["rolling_update"]["max_surge"] = 0
            Deployment(
                name,
                metadata=metadata,
                spec={"selector": selector, "strategy": rolling, "replicas": REPLICAS, "template": template},
                opts=waits,
            )
        running = machines or REPLICAS
        if running > 1:
            PodDisruptionBudget(
                name,
                metadata=metadata,
                spec={
                    "selector": selector,
                    # A number: DaemonSets have no scale, of which shares or max_unavailable could be reckoned.
                    "min_available": running - 1,
                    # One that does not work protects nothing.
                    "unhealthy_pod_eviction_policy": "AlwaysAllow",
                },
                opts=child,
            )
        if "volume" in map(rbac.canonical, args["controllers"]):
            adapter.storage(child)
        self.register_outputs({})


def _daemon(args: CloudControllerManagerArgs, adapter: clouds.CloudAdapter) -> tuple[manager_pod.Daemon, rbac.Rules]:
    """What runs, and its rights."""
    controllers = args["controllers"]
    if not controllers:
        raise inputs.WrongInput("controllers", "empty; allowed: at least one controller for the daemon to run")
    try:
        # It is bound to the pod's address, where not everybody may read its metrics.
        lease = args.get("lease", rbac.LEASE_NAME)
        rules = rbac.rules(controllers, protected=True, cloud=args["cloud"], lease=lease)
    except InvalidConfiguration as error:
        raise inputs.WrongInput("controllers", f"{error.why}; allowed: {error.allowed}") from None
    config_file = f"{CONFIG_DIRECTORY}/{CONFIG_FILE}"
    if "vendor_version" in args:
        vendor = adapter.vendor_manager(
            args["vendor_version"],
            [rbac.canonical(controller) for controller in controllers],
            cluster_name=args["cluster_name"],
            cluster_cidr=args["cluster_cidr"],
            config_file=config_file,
        )
        image = args.get("image", vendor.image)
        return manager_pod.Daemon(image, vendor.arguments, "/healthz"), vendor.rules
    arguments: list[pulumi.Input[str]] = [
        "run",
        f"--cloud={args['cloud']}",
        f"--cloud-config={config_file}",
        f"--controllers={','.join(controllers)}",
        pulumi.Output.concat("--cluster-name=", args["cluster_name"]),
        pulumi.Output.concat("--cluster-cidr=", args["cluster_cidr"]),
        f"--leader-elect-resource-name={lease}",
        *args.get("arguments", ()),
    ]
    return manager_pod.Daemon(args.get("image", adapter.image), arguments, "/readyz"), rules


def _rule(rule: rbac.PolicyRule) -> PolicyRuleArgsDict:
    made: PolicyRuleArgsDict = {
        "api_groups": [*rule.api_groups],
        "resources": [*rule.resources],
        "verbs": [*rule.verbs],
    }
    if rule.resource_names:
        made["resource_names"] = [*rule.resource_names]
    return made

"""The cloud controller manager (CCM) in its cluster: identity, rights, cloud config and the daemon itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.apps.v1 import DaemonSet
from pulumi_kubernetes.core.v1 import (
    ContainerArgsDict,
    PodSpecArgsDict,
    ProbeArgsDict,
    Secret,
    ServiceAccount,
    TolerationArgsDict,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict
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

from . import clouds, inputs
from .arguments import checked

NAME = "cloud-controller-manager"
NAMESPACE = rbac.LEASE_NAMESPACE
SECURE_PORT = 10258
CONFIG_DIRECTORY = "/etc/cloud"
CONFIG_FILE = "cloud.conf"
NOBODY = 65534

# Seed 002 §8.1: the daemon must come up before any node is initialised or ready, and on the control plane.
TOLERATIONS: list[TolerationArgsDict] = [
    {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"},
    {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
    {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
]


class CloudControllerManagerArgs(TypedDict):
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
    """How many control-plane machines there are, each of which runs one; with two or more, evictions are budgeted."""
    image: NotRequired[pulumi.Input[str]]
    """The cloud's own image if not given."""


class CloudControllerManager(pulumi.ComponentResource):
    """A DaemonSet on the control-plane nodes, in kube-system, with the rights of its controllers and no more.

    Where the daemon runs controller `volume`, the cloud's StorageClass and CSIDriver come with it.

    Of several instances one leads (a Lease). A changed cloud config restarts them, one after another.
    """

    def __init__(self, name: str, args: CloudControllerManagerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        args = checked(CloudControllerManagerArgs, args)
        adapter = clouds.adapter(args["cloud"])
        inputs.check_cidr("cluster_cidr", args["cluster_cidr"])
        machines = args.get("machines", 1)
        inputs.check("machines", machines, "an integer of at least 1", lambda v: v >= 1)
        cluster_rules, namespace_rules = _rules(args["controllers"], args["cloud"])
        cloud_config = pulumi.Output.secret(args["cloud_config"])
        super().__init__(
            "cloudcontroller:index:CloudControllerManager", name, {**args, "cloud_config": cloud_config}, opts
        )
        child = pulumi.ResourceOptions(parent=self)
        metadata: ObjectMetaArgsDict = {"name": NAME, "namespace": NAMESPACE, "labels": {"k8s-app": NAME}}
        subject: SubjectArgsDict = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}

        account = ServiceAccount(name, metadata=metadata, opts=child)
        # The names of cluster-wide roles begin with `system:` as those of Kubernetes' own components do.
        cluster_role = ClusterRole(
            name, metadata={"name": f"system:{NAME}", "labels": {"k8s-app": NAME}}, rules=cluster_rules, opts=child
        )
        cluster_binding = ClusterRoleBinding(
            name,
            metadata={"name": f"system:{NAME}", "labels": {"k8s-app": NAME}},
            role_ref={"api_group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"system:{NAME}"},
            subjects=[subject],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[cluster_role]),
        )
        role = Role(name, metadata=metadata, rules=namespace_rules, opts=child)
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
        DaemonSet(
            name,
            metadata=metadata,
            spec={
                "selector": {"match_labels": {"k8s-app": NAME}},
                "update_strategy": {"type": "RollingUpdate", "rolling_update": {"max_unavailable": 1}},
                "template": {
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
                    "spec": _pod(args, adapter),
                },
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[account, cluster_binding, binding, config]),
        )
        if machines > 1:
            PodDisruptionBudget(
                name,
                metadata=metadata,
                spec={
                    "selector": {"match_labels": {"k8s-app": NAME}},
                    # A number: DaemonSets have no scale, of which shares or max_unavailable could be reckoned.
                    "min_available": machines - 1,
                    # One that does not work protects nothing.
                    "unhealthy_pod_eviction_policy": "AlwaysAllow",
                },
                opts=child,
            )
        if "volume" in map(rbac.canonical, args["controllers"]):
            adapter.storage(child)
        self.register_outputs({})


def _rules(controllers: Sequence[str], cloud: str) -> tuple[list[PolicyRuleArgsDict], list[PolicyRuleArgsDict]]:
    """The rules of the ClusterRole and of the Role in the daemon's namespace."""
    if not controllers:
        raise inputs.WrongInput("controllers", "empty; allowed: at least one controller for the daemon to run")
    try:
        # It is bound to the pod's address, where not everybody may read its metrics.
        rules = rbac.rules(controllers, protected=True, cloud=cloud)
    except InvalidConfiguration as error:
        raise inputs.WrongInput("controllers", f"{error.why}; allowed: {error.allowed}") from None
    return [_rule(rule) for rule in rules.cluster], [_rule(rule) for rule in rules.namespaced]


def _rule(rule: rbac.PolicyRule) -> PolicyRuleArgsDict:
    made: PolicyRuleArgsDict = {
        "api_groups": [*rule.api_groups],
        "resources": [*rule.resources],
        "verbs": [*rule.verbs],
    }
    if rule.resource_names:
        made["resource_names"] = [*rule.resource_names]
    return made


def _pod(args: CloudControllerManagerArgs, adapter: clouds.CloudAdapter) -> PodSpecArgsDict:
    container: ContainerArgsDict = {
        "name": NAME,
        "image": args.get("image", adapter.image),
        "args": [
            "run",
            f"--cloud={args['cloud']}",
            f"--cloud-config={CONFIG_DIRECTORY}/{CONFIG_FILE}",
            f"--controllers={','.join(args['controllers'])}",
            pulumi.Output.concat("--cluster-name=", args["cluster_name"]),
            pulumi.Output.concat("--cluster-cidr=", args["cluster_cidr"]),
            "--leader-elect=true",
            "--bind-address=$(POD_IP)",
        ],
        "env": [{"name": "POD_IP", "value_from": {"field_ref": {"field_path": "status.podIP"}}}],
        "ports": [{"name": "secure", "container_port": SECURE_PORT, "protocol": "TCP"}],
        "readiness_probe": _probe("/readyz", period=2),
        "liveness_probe": {**_probe("/healthz", period=10), "initial_delay_seconds": 15},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
        "security_context": {
            "allow_privilege_escalation": False,
            "read_only_root_filesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volume_mounts": [{"name": "cloud-config", "mount_path": CONFIG_DIRECTORY, "read_only": True}],
    }
    return {
        "service_account_name": NAME,
        "priority_class_name": "system-cluster-critical",
        "node_selector": {"node-role.kubernetes.io/control-plane": ""},
        "tolerations": TOLERATIONS,
        # The pod network needs routes, and who writes routes is this pod.
        "host_network": True,
        "security_context": {
            "run_as_non_root": True,
            "run_as_user": NOBODY,
            "fs_group": NOBODY,
            "seccomp_profile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "cloud-config", "secret": {"secret_name": f"{NAME}-config", "default_mode": 0o440}}],
    }


def _probe(path: str, *, period: int) -> ProbeArgsDict:
    return {
        "http_get": {"path": path, "port": "secure", "scheme": "HTTPS"},
        "period_seconds": period,
        "timeout_seconds": 5,
        "failure_threshold": 3,
    }

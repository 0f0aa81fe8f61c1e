"""Resources that hold the flags of Kubernetes' components, for the tests of the rules about them."""

from __future__ import annotations

import base64
from typing import Any

from cloud_stacks.policies.host import AnalyzedResource
from local.plugins.values import PropertyMap
from tests.policy_objects import EXEMPT, resource, workload

EXEMPT_RESOURCE = f"kube-system/{EXEMPT}"
"""A name under which the rules leave a resource alone that is no Kubernetes object."""

KUBEADM = """
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.1
networking: {podSubnet: 100.64.0.0/16, serviceSubnet: 172.20.0.0/16}
controllerManager:
  extraArgs:
  - {name: cloud-provider, value: external}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  kubeletExtraArgs:
  - {name: cloud-provider, value: external}
"""
"""A cluster that leaves the cloud to its CCM."""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def machine(text: Any, name: str = "machine") -> AnalyzedResource:
    """A launch template on AWS whose machines run this when they first start."""
    props: PropertyMap = {
        "userData": encoded(text) if isinstance(text, str) else text,
        "metadataOptions": {"httpTokens": "required"},
    }
    return resource("aws:ec2/launchTemplate:LaunchTemplate", props, name)


def config_map(text: Any, name: str = "kubeadm-config", key: str = "ClusterConfiguration") -> AnalyzedResource:
    props = {"metadata": {"name": name, "namespace": "kube-system"}, "data": {key: text}}
    return resource("kubernetes:core/v1:ConfigMap", props, name)


def component(name: str, *args: Any, version: str = "v1.36.1") -> AnalyzedResource:
    """A component of the control plane as a DaemonSet."""
    container = {"name": name, "image": f"registry.k8s.io/{name}:{version}", "command": [name, *args]}
    return workload({"template": {"spec": {"containers": [container]}}}, name=name)


def eks(version: Any = "1.36", **props: Any) -> AnalyzedResource:
    return resource("aws:eks/cluster:Cluster", {"version": version, **props}, "prod")


def vpc(cidr: Any = "10.0.0.0/16") -> AnalyzedResource:
    return resource("aws:ec2/vpc:Vpc", {"cidrBlock": cidr}, "vpc")


def group(most: Any) -> AnalyzedResource:
    return resource("aws:autoscaling/group:Group", {"minSize": 1, "maxSize": most}, "workers")

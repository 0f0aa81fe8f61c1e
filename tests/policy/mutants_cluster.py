"""Damages of what a stack says of its cluster: flags, ranges, versions, machines."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from tests.policy.mutants import DAEMON_SET, Mutant

_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_INSTANCE = "alicloud:ecs/instance:Instance"
_ALLOCATE = '  - {name: allocate-node-cidrs, value: "true"}\n'
_EXTERNAL = "  - {name: cloud-provider, value: external}\n"
_PROXY = "\n---\nkind: KubeProxyConfiguration\nhealthzBindAddress: 127.0.0.1:10256\n"
_AWS = "registry.k8s.io/provider-aws/cloud-controller-manager"


def _user_data(change: Callable[[str], str]) -> Callable[[Any], None]:
    def changed(properties: Any) -> None:
        before = base64.b64decode(properties["userData"]).decode()
        after = change(before)
        assert after != before
        properties["userData"] = base64.b64encode(after.encode()).decode()

    return changed


def _plain(value: Any) -> Any:
    """The value, though it is secret."""
    return getattr(value, "value", value)


def _container(**fields: Any) -> Callable[[Any], None]:
    def changed(properties: Any) -> None:
        properties["spec"]["template"]["spec"]["containers"][0].update(fields)

    return changed


def _with_argument(argument: str) -> Callable[[Any], None]:
    return lambda p: p["spec"]["template"]["spec"]["containers"][0]["args"].append(argument)


MUTANTS = [
    Mutant(
        "controller-manager-leave-cloud-to-ccm",
        "aws-staging",
        _TEMPLATE,
        _user_data(lambda text: text.replace(f"{_EXTERNAL}{_ALLOCATE}", _ALLOCATE)),
        name="control-plane-first",
    ),
    Mutant(
        "kubelet-use-external-cloud",
        "alicloud-staging",
        _INSTANCE,
        _user_data(lambda text: text.replace("  - {name: cloud-provider, value: external}\n", "")),
        name="workers-0",
    ),
    Mutant(
        "api-server-avoid-cloud-provider",
        "aws-staging",
        _TEMPLATE,
        _user_data(lambda text: f"{text}\napiServer:\n  extraArgs:\n  - {{name: cloud-provider, value: external}}\n"),
        name="control-plane-first",
    ),
    Mutant(
        "kube-proxy-answer-load-balancers",
        "alicloud-staging",
        _INSTANCE,
        _user_data(lambda text: text + _PROXY),
        name="control-plane-0",
    ),
    Mutant("cluster-cidr-agree", "aws-staging", DAEMON_SET, _with_argument("--cluster-cidr=100.96.0.0/16")),
    Mutant(
        "cluster-ranges-avoid-overlap",
        "alicloud-staging",
        "alicloud:vpc/network:Network",
        lambda p: p.update(cidrBlock="172.16.0.0/12"),
    ),
    Mutant(
        "cluster-ranges-avoid-overlap",
        "openstack-prod",
        "openstack:networking/subnet:Subnet",
        lambda p: p.update(cidr="172.16.0.0/12"),
    ),
    Mutant(
        "kubelet-use-external-cloud",
        "openstack-prod",
        "openstack:compute/instance:Instance",
        lambda p: p.update(userData=str(_plain(p["userData"])).replace(_EXTERNAL, "")),
        name="workers-0",
    ),
    Mutant(
        "cluster-cidr-cover-nodes",
        "aws-staging",
        "aws:autoscaling/group:Group",
        lambda p: p.update(maxSize=300),
        name="workers",
    ),
    Mutant(
        "node-follow-control-plane-version",
        "aws-prod",
        "aws:eks/nodeGroup:NodeGroup",
        lambda p: p.update(version="1.37"),
    ),
    Mutant(
        "cluster-version-stay-supported",
        "alicloud-prod",
        "alicloud:cs/managedKubernetes:ManagedKubernetes",
        lambda p: p.update(version="1.30.1-aliyun.1"),
    ),
    Mutant(
        "cluster-version-avoid-vulnerabilities",
        "aws-staging",
        DAEMON_SET,
        _container(image="registry.example/cloud-provider-vsphere/cpi/release/manager:v1.28.0"),
        # It is no manager of AWS's any more.
        also=frozenset({"lb-service-depend-on-ccm"}),
    ),
    Mutant(
        "ccm-version-acknowledge-changes",
        "aws-prod",
        "kubernetes:apps/v1:Deployment",
        _container(image=f"{_AWS}:v1.36.1"),
        name="cloud-controller-manager",
    ),
    Mutant("ccm-workload-fit-kubernetes", "aws-staging", DAEMON_SET, _container(image=f"{_AWS}:v1.35.2")),
    Mutant(
        "ccm-workload-use-known-version",
        "aws-staging",
        DAEMON_SET,
        _container(image=f"mirror.example/provider-aws/cloud-controller-manager@sha256:{'0' * 64}"),
    ),
    Mutant(
        "aws-ccm-reach-metadata",
        "aws-staging",
        _TEMPLATE,
        lambda p: p["metadataOptions"].update(httpTokens="optional"),
    ),
    Mutant(
        "alicloud-ccm-reach-metadata",
        "alicloud-prod",
        "alicloud:cs/nodePool:NodePool",
        lambda p: p["instanceMetadataOptions"].update(httpTokens="optional"),
    ),
]

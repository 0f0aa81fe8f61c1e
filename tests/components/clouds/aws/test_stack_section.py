"""The section `aws` of a stack file: what it comes to, and what is said about each kind of mistake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components.stack_config import ConfigError, Controller, Executor, parse


def on_aws(pools: list[dict[str, Any]] | None = None, executors: dict[str, str] | None = None, **aws: Any) -> Any:
    """Config of a cluster on AWS, as Pulumi hands it over; `aws`: keys of that section (None: not said)."""
    worker = {"name": "workers", "count": 3, "type": "m7g.large", "zones": ["eu-central-1a", "eu-central-1b"]}
    section = {"region": "eu-central-1", "kubernetesVersion": "1.34", "ccmImage": "registry.example/ccm:1", **aws}
    config = {
        "cloud": "aws",
        "clusterName": "c",
        "nodePools": [worker] if pools is None else pools,
        "executors": executors or {},
        "aws": {key: value for key, value in section.items() if value is not None},
    }
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}


PLANE = {"name": "cp", "role": "control-plane", "count": 3, "type": "m7g.large", "zones": ["eu-central-1a"]}


def test_controllers_that_aws_runs_default_to_the_vendor() -> None:
    on_eks = parse(on_aws())
    on_ec2 = parse(on_aws([PLANE], controlPlane="ec2", nodes="asg"))

    assert on_eks.run_by(Executor.DAEMON) == [Controller.SERVICE]
    assert on_ec2.run_by(Executor.VENDOR) == [Controller.VOLUME]


@pytest.mark.parametrize(
    ("config", "line"),
    [
        (on_aws(region="europe"), 'aws.region is "europe": allowed: a region such as eu-central-1'),
        (
            on_aws(region="cn-north-1"),
            'aws.region is "cn-north-1": allowed: a region such as eu-central-1, none of China',
        ),
        (on_aws(region=None), "aws.region is missing: The region."),
        (on_aws(controlPlane="esk"), "aws.controlPlane is \"esk\": did you mean 'eks'? allowed: eks, ec2"),
        (on_aws(kubernetesVersion=1.34), "aws.kubernetesVersion is 1.34: allowed: text"),
        (on_aws(kubernetesVersion="v1.34"), "allowed: a minor version such as '1.36'"),
        (on_aws(apiSource=[]), "aws.apiSource is not a known key; did you mean 'apiSources'?"),
        (on_aws(vpcCidr="10.0.0.0/24"), 'aws.vpcCidr is "10.0.0.0/24": allowed: an IPv4 range from /16 to /20'),
        (on_aws(vpcCidr="172.20.0.0/16"), 'aws.serviceCidr is "172.20.0.0/16": overlaps the range of the VPC'),
        (on_aws(serviceCidr="100.64.0.0/16"), 'aws.serviceCidr is "100.64.0.0/16": allowed: a range from /12 to /24'),
        (
            on_aws([PLANE], controlPlane="ec2", nodes="asg", podCidr="10.0.0.0/20"),
            'aws.podCidr is "10.0.0.0/20": overlaps the VPC\'s 10.0.0.0/16',
        ),
        (on_aws(executors={"route": "daemon"}), 'executors.route is "daemon": pods on EKS have addresses of the VPC'),
        (on_aws(apiSources=["10.0.0.1/8"]), 'aws.apiSources[0] is "10.0.0.1/8": allowed: an IPv4 range'),
        (on_aws([{**PLANE, "role": "worker", "count": 0}]), "the cloud controller manager needs a machine; allowed:"),
        (on_aws([PLANE]), 'nodePools[0].role is "control-plane": AWS runs the control plane; allowed: worker'),
        (on_aws(region="us-east-1"), 'zones[0] is "eu-central-1a": allowed: zones of region us-east-1'),
        (
            on_aws([{**PLANE, "role": "worker", "zones": ["eu-central-1-ham-1a"]}]),
            'zones[0] is "eu-central-1-ham-1a": allowed: zones of region eu-central-1',
        ),
        (on_aws([{**PLANE, "role": "worker"}]), "all in eu-central-1a, but EKS requires subnets in two zones"),
        (on_aws(controlPlane="ec2", nodes="asg"), "allowed: at least one pool of role control-plane"),
        (
            on_aws([PLANE], controlPlane="ec2"),
            'aws.nodes is "eks": managed node groups join only EKS clusters; allowed: asg',
        ),
        (on_aws([{**PLANE, "count": 2}], controlPlane="ec2", nodes="asg"), "count is 2: etcd needs a majority"),
        (
            on_aws([PLANE, {**PLANE, "name": "b"}], controlPlane="ec2", nodes="asg"),
            'nodePools[1].role is "control-plane": another pool is the control plane',
        ),
        (
            on_aws([PLANE], controlPlane="ec2", nodes="asg", kubernetesVersion="1.30"),
            'kubernetesVersion is "1.30": allowed with controlPlane ec2: 1.31 or newer',
        ),
        (
            on_aws(executors={"volume": "daemon"}),
            'executors.volume is "daemon": on AWS the EBS CSI driver manages volumes',
        ),
        (on_aws(ccm="vendor", ccmVersion="v1.34.0"), 'aws.ccm is "vendor": EKS already runs AWS\'s CCM'),
        (
            on_aws([PLANE], controlPlane="ec2", nodes="asg", ccm="vendor"),
            "aws.ccmVersion is null: must be set with ccm: vendor, and only then",
        ),
        (
            on_aws(
                [PLANE],
                controlPlane="ec2",
                nodes="asg",
                ccm="vendor",
                ccmVersion="v1.34.0",
                serveNlbClass=True,
            ),
            "aws.serveNlbClass is true: AWS's CCM does not support class service.k8s.aws/nlb",
        ),
        (on_aws(ccmVersion="v1.32.0"), 'aws.ccmVersion is "v1.32.0": must be set with ccm: vendor'),
        (on_aws(simulated=True), "aws.simulated is true: aws.endpoint is not set: run the stack with `make`"),
        (on_aws(endpoint="http://127.0.0.1:1"), "aws.simulated is false: aws.endpoint is the URL of a simulator"),
        (on_aws(ccmImage=None), "aws.ccmImage is null: nodes on AWS cannot pull the default image"),
        (
            on_aws([PLANE], {"node": "vendor"}, controlPlane="ec2", nodes="asg"),
            'executors.node is "vendor": AWS runs no controllers for a control plane on EC2; allowed: daemon',
        ),
        (
            {**on_aws([{**PLANE, "role": "worker", "name": "b" * 30}]), "clusterName": "a" * 25},
            f"-{'b' * 30}' has 56 characters; allowed: at most 55",
        ),
        (
            {**on_aws(), "clusterName": "a" * 32},
            f'clusterName is "{"a" * 32}": too long; allowed with controlPlane eks: at most 31 characters',
        ),
        (
            {**on_aws([PLANE], controlPlane="ec2", nodes="asg"), "clusterName": "a" * 21},
            f'clusterName is "{"a" * 21}": too long; allowed with controlPlane ec2: at most 20 characters',
        ),
        (
            {**on_aws(executors={"service": "vendor"}), "annotationsMayName": '["subnet=subnet-1"]'},
            'annotationsMayName is ["subnet=subnet-1"]: only this project\'s service controller',
        ),
        ({**on_aws(), "aws": "null"}, "aws is missing: cloud aws needs {region, kubernetesVersion}"),
    ],
)
def test_a_mistake_in_an_aws_stack_is_one_line_with_key_value_and_what_is_allowed(
    config: dict[str, str], line: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(config)

    assert line in str(caught.value)

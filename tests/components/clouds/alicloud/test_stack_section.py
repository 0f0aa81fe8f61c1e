"""The section `alicloud` of a stack file: what it comes to, and the message for each kind of mistake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components.stack_config import ConfigError, Controller, Executor, parse

WORKERS = {"name": "workers", "count": 3, "type": "ecs.g8i.large", "zones": ["cn-hangzhou-h", "cn-hangzhou-i"]}
PLANE = {**WORKERS, "name": "cp", "role": "control-plane"}
ON_ECS: dict[str, Any] = {
    "pools": [PLANE],
    "controlPlane": "ecs",
    "kubernetesVersion": "1.36",
    "image": "aliyun_3.vhd",
    "kmsInstance": "kst-1",
    "kmsKey": "key-1",
    "ccmImage": "registry.example/ccm:1",
}


def on(
    pools: list[dict[str, Any]] | None = None, executors: dict[str, str] | None = None, name: str = "c", **section: Any
) -> Any:
    """Config of a cluster as Pulumi hands it over; `section`: keys of `alicloud` (None: not given), or sourceRanges."""
    ranges = section.pop("sourceRanges", [])
    given = {"region": "cn-hangzhou", "kubernetesVersion": "1.34.1-aliyun.1", **section}
    values = {
        "cloud": "alicloud",
        "clusterName": name,
        "nodePools": [WORKERS] if pools is None else pools,
        "executors": executors or {},
        "sourceRanges": ranges,
        "alicloud": {key: value for key, value in given.items() if value is not None},
    }
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}


def ecs(**more: Any) -> Any:
    return on(**{**ON_ECS, **more})


def test_on_ack_the_vendor_runs_everything_and_on_ecs_only_volumes() -> None:
    assert parse(on()).run_by(Executor.VENDOR) == list(Controller)
    assert parse(ecs()).run_by(Executor.VENDOR) == [Controller.VOLUME]


def test_our_daemon_may_run_beside_acks_for_services() -> None:
    config = parse(on(executors={"service": "daemon"}, ccmImage="registry.example/ccm:1", sourceRanges=["10.0.0.0/8"]))

    assert config.run_by(Executor.DAEMON) == [Controller.SERVICE]


@pytest.mark.parametrize(
    ("config", "line"),
    [
        (on(region="China"), 'alicloud.region is "China": allowed: a region such as cn-hangzhou'),
        (on(region=None), "alicloud.region is missing: The region."),
        (on(simulated=True), "alicloud.simulated is true: alicloud.endpoint is not set: run the stack with `make`"),
        (on(endpoint="http://127.0.0.1:1"), "alicloud.simulated is false: alicloud.endpoint is the URL of a stand-in"),
        (
            on(simulated=True, endpoint="http://127.0.0.1:1"),
            "alicloud.simulated is true: a site has a cluster already; allowed: false, or `cluster: existing`",
        ),
        (on(controlPlane="eks"), 'alicloud.controlPlane is "eks": '),
        (on(kubernetesVersion="1.34"), "allowed with controlPlane ack: ACK's full version, such as 1.34.1-aliyun.1"),
        (on(kubernetesVersion="v1.34"), "a version such as '1.34.1-aliyun.1' (ack) or '1.36' (ecs)"),
        (ecs(kubernetesVersion="1.34.1-aliyun.1"), "allowed with controlPlane ecs: a minor version, 1.31 or newer"),
        (ecs(kubernetesVersion="1.30"), "1.31 or newer"),
        (on(vpcCidr="11.0.0.0/16"), "allowed: a range from /10 to /16 of one of 10.0.0.0/8"),
        (on(vpcCidr="10.0.0.0/20"), "allowed: a range from /10 to /16"),
        (on(vpcCidr="10.0.0.0/9"), "allowed: a range from /10 to /16"),
        (ecs(podCidr="100.64.0.0/16"), "overlaps 100.64.0.0/10, which Alibaba Cloud uses itself"),
        (ecs(podCidr="10.0.0.0/17"), 'alicloud.podCidr is "10.0.0.0/17": overlaps the VPC\'s 10.0.0.0/16'),
        (on(serviceCidr="10.0.0.0/20"), 'alicloud.serviceCidr is "10.0.0.0/20": overlaps the range of the VPC'),
        ({**on(), "monitoring": "operator"}, 'monitoring is "operator": the stack runs no cloud controller manager'),
        (on(executors={"node": "daemon"}), 'executors.node is "daemon": ACK runs it, and two would undo each other'),
        (on(executors={"service": "daemon"}), "alicloud.ccmImage is null: nodes cannot pull the default image"),
        (on(sourceRanges=["10.0.0.0/8"]), "ACK's CCM does not limit a CLB's clients by them"),
        (
            on(
                [{**WORKERS, "zones": ["cn-hangzhou-h"]}],
                {"service": "daemon"},
                ccmImage="r/ccm:1",
                sourceRanges=["10.0.0.0/8"],
            ),
            'sourceRanges is ["10.0.0.0/8"]: a CLB does not limit its clients by them',
        ),
        (ecs(executors={"volume": "daemon"}), "on Alibaba Cloud its CSI driver manages volumes; allowed: vendor"),
        (ecs(executors={"node": "vendor"}), "Alibaba Cloud runs no controllers for a control plane on ECS"),
        (ecs(ccmImage=None), "alicloud.ccmImage is null: nodes cannot pull the default image"),
        (on([PLANE]), 'nodePools[0].role is "control-plane": ACK runs the control plane; allowed: worker'),
        (on([{**WORKERS, "zones": ["eu-central-1a"]}]), "allowed: zones of region cn-hangzhou, such as cn-hangzhou-a"),
        (on([{**WORKERS, "ingress": True}]), "nodePools[0].ingress is true: label the pool"),
        (on(name="a" * 39), "too long; allowed with controlPlane ack: at most 38 characters"),
        (ecs(name="a" * 31), "too long; allowed with controlPlane ecs: at most 30 characters"),
        (on(autoscaling={"others": 4}), "alicloud.autoscaling.others is 4: no such pool; allowed: workers"),
        (on(autoscaling={"workers": 3}), "alicloud.autoscaling.workers is 3: allowed: more than the pool's count, 3"),
        (ecs(autoscaling={"cp": 5}), "allowed only with controlPlane ack"),
        (ecs(publicApi=True), "alicloud.publicApi is true: allowed only with controlPlane ack"),
        (ecs(logDays=30), "alicloud.logDays is 30: allowed only with controlPlane ack"),
        (on(logDays=3001), "alicloud.logDays is 3001: "),
        (on(auditDays=89), "alicloud.auditDays is 89: "),
        (on(auditDays=90, name="a" * 31), "too long; allowed with alicloud.auditDays: at most 30 characters"),
        (on(controlPlaneEgress=["10.9.0.0/16"]), "ACK runs the control plane; allowed with controlPlane ack: none"),
        (on(image="aliyun_3.vhd"), 'alicloud.image is "aliyun_3.vhd": allowed only with controlPlane ecs'),
        (on(apiSources=["192.168.0.0/16"]), "an ACK cluster's API server cannot be limited to them"),
        (ecs(image=None), "alicloud.image is null: must be set with controlPlane ecs"),
        (ecs(kmsKey=None), "alicloud.kmsKey is null: must be set with controlPlane ecs"),
        (ecs(pools=[WORKERS]), "allowed: at least one pool of role control-plane"),
        (ecs(pools=[{**PLANE, "count": 2}]), "nodePools[0].count is 2: etcd needs a majority"),
        (ecs(pools=[PLANE, {**PLANE, "name": "cp2"}]), "another pool is the control plane already"),
        (ecs(pools=[{**PLANE, "zones": ["cn-hangzhou-h"]}]), "the NLB of the API requires two zones"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_is_allowed(config: Any, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(config)

    assert line in str(caught.value)
    assert "\n" not in str(caught.value)

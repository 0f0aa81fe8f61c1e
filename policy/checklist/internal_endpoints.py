"""Rule: a cloud controller manager calls the cloud's API by addresses inside the network, not over the internet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cloud_controller.cloud_errors import InvalidConfiguration
from policy.cloud_configs import CloudConfig, cloud_configs
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule, setting
from policy.subjects import SECRET, Subject
from policy.unknowns import Problem
from policy.workloads import IMAGES


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """The Secrets with a cloud config by which a CCM calls an API over the internet."""
    for secret in stack.of(SECRET):
        yield secret, partial(_problem, stack, secret)


def _problem(stack: Stack, secret: Subject) -> str | None:
    elsewhere = stack.config.get("reached") or ()
    public = {api for config in cloud_configs(stack, secret) for api in _public(config, stack)}
    apis = sorted(public.difference(elsewhere))
    return f"the CCM calls these APIs by public addresses: {', '.join(apis)}" if apis else None


def _public(config: CloudConfig, stack: Stack) -> Iterator[str]:
    text = config.text()
    if config.cloud.public_apis is None or text is None:
        return
    try:
        yield from config.cloud.public_apis(text, stack)
    except InvalidConfiguration:
        # Rule ccm-cloud-config-valid reports it.
        return


INTERNAL_ENDPOINTS = StackRule(
    "ccm-use-internal-endpoints",
    problems,
    why=(
        "Calls of the cloud's API over the internet need a way out for the control plane, fail with it, and leave the "
        "network with signed requests. Inside the network, egress can be closed."
    ),
    level=ADVISORY,
    settings={
        "images": IMAGES,
        "reached": setting("texts", "APIs that are reached by internal endpoints that another program makes.", []),
    },
    title="Internal endpoints of the cloud's API",
    severity=MEDIUM,
    lines=["11.3.5"],
    judges=(
        "The CCM's cloud config, from a Secret of the stack, leads to addresses inside the network. On Alibaba Cloud "
        "`network` is `vpc`, or `Endpoints` names others than `PRODUCT.REGION.aliyuncs.com` (the API of quotas has "
        "only a public address and is left alone). On AWS a stack with a VPC makes interface endpoints, with private "
        "DNS, for `ec2`, `elasticloadbalancing` and `sts`, or the config has a `ServiceOverride` for each. mycloud "
        "has one address, which is the network's own. A text that is unknown in a preview is judged in the update."
    ),
    unseen="a VPC of AWS that another program makes; which network an endpoint is in, and whether it admits the CCM.",
    tags=["network"],
    remedy=(
        "On Alibaba Cloud set network to vpc in the cloud config; on AWS make an interface VPC endpoint with private "
        "DNS for each API that the message names, in the CCM's subnets, or name those that exist in `reached`."
    ),
    url="https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html",
)

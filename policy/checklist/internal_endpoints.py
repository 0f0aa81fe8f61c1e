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
        "Calls to the cloud's API over the internet need a way out of the control plane's network, fail where it "
        "fails, and carry signed requests outside. With endpoints inside the network, egress can be closed."
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
        "The CCM's cloud config, from a Secret of the stack, leads to addresses inside the network, or the stack makes "
        "internal endpoints for the cloud's APIs. A text that is unknown in a preview is judged in the update. The "
        "rule skips clouds whose API has no public addresses."
    ),
    unseen=(
        "Networks and endpoints that another program makes; which network an endpoint is in, and whether it admits the "
        "CCM."
    ),
    tags=["network"],
    remedy=(
        "Set the internal addresses in the cloud config, or make an internal endpoint for each API that the message "
        "names, in the CCM's subnets. Name those that another program makes in `reached`."
    ),
    url="https://kubernetes.io/docs/concepts/security/security-checklist/#network-security",
)

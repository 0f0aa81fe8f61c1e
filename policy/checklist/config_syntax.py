"""Rule: a cloud controller manager can read its cloud config."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cloud_controller.cloud_errors import InvalidConfiguration
from policy.cloud_configs import CloudConfig, cloud_configs
from policy.rules import HIGH, MANDATORY, Stack, StackRule
from policy.subjects import SECRET, Subject
from policy.unknowns import Problem
from policy.workloads import IMAGES


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """The cloud configs in the stack's Secrets that the cloud's own parser refuses."""
    for secret in stack.of(SECRET):
        yield secret, partial(_problem, stack, secret)


def _problem(stack: Stack, secret: Subject) -> str | None:
    found = [message for config in cloud_configs(stack, secret) if (message := _error(config))]
    return "; ".join(dict.fromkeys(found)) or None


def _error(config: CloudConfig) -> str | None:
    text = config.text()
    if config.cloud.check_config is None or text is None:
        return None
    try:
        config.cloud.check_config(text)
    except InvalidConfiguration as error:
        # Parsers name sections, keys and lines, never values.
        return f"entry {config.key}: {error}"
    return None


CLOUD_CONFIG_IS_VALID = StackRule(
    "ccm-cloud-config-valid",
    problems,
    why=(
        "A cloud controller manager that cannot read its cloud config does not start: no node is initialised, and no "
        "load balancer changes any more."
    ),
    level=MANDATORY,
    settings={"images": IMAGES},
    title="The cloud config is valid",
    severity=HIGH,
    lines=["11.1.7"],
    judges=(
        "The cloud config of each CCM whose Secret is in the stack (the file of `--cloud-config`, for the cloud of "
        "`--cloud` or `--cloud-provider`) is read with the cloud's own parser, the one of this project's daemon. "
        "Reported are unknown sections and keys, with the nearest name, what is missing, and values that cannot be "
        "right. Messages name lines, sections and keys, never values. A text that is unknown in a preview, such as "
        "that of a new cluster, is judged in the update."
    ),
    unseen=(
        "Cloud configs of clouds without a parser here, in ConfigMaps, on the node, or in a Secret that another "
        "program makes; and whether what a config names exists."
    ),
    tags=["cloud-config"],
    remedy="Correct the section or key that the message names; docs/clouds has a page for each cloud's config.",
    url="https://kubernetes.io/docs/tasks/administer-cluster/running-cloud-controller/",
)

"""The policy pack; the one module that may construct it, since that starts the server and never returns."""

import gc

# What is imported stays: to search it for cycles takes a twelfth of the start.
gc.disable()
from pulumi_policy import PolicyPack  # noqa: E402

from policy.checklist import POLICIES  # noqa: E402

gc.freeze()
gc.enable()

PolicyPack(
    "cloud-controller-checklist",
    [*POLICIES],
    description="Production rules for a stack with a cloud controller manager.",
    display_name="Cloud controller checklist",
    tags=["kubernetes", "cloud-controller-manager"],
)

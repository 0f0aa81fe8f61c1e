"""The policy pack; the one module that may construct it, since that starts the server and never returns."""

from pulumi_policy import PolicyPack

from policy.checklist import POLICIES

PolicyPack(
    "cloud-controller-checklist",
    [*POLICIES],
    description="Production rules for a stack with a cloud controller manager.",
    display_name="Cloud controller checklist",
    tags=["kubernetes", "cloud-controller-manager"],
)

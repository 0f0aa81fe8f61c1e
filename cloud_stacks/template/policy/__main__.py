"""The policy pack: the checklist of cloud-controller. Add your own rules to the list."""

from cloud_stacks.policy.checklist import POLICIES
from pulumi_policy import PolicyPack

PolicyPack("NAME", [*POLICIES])

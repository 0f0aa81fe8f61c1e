"""Mutants of what components make of networks and audit trails."""

from __future__ import annotations

from tests.policy.mutants import Mutant

MUTANTS = [
    Mutant(
        "ccm-network-restrict-egress",
        "aws-prod",
        "kubernetes:networking.k8s.io/v1:NetworkPolicy",
        lambda p: p["spec"]["egress"].append({}),
    ),
    Mutant(
        "ccm-network-restrict-egress",
        "aws-staging",
        "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
        lambda p: p.update(ipProtocol="-1", fromPort=None, toPort=None),
        name="control-plane-to-anywhere-443",
    ),
    Mutant(
        "ccm-network-restrict-egress",
        "alicloud-staging",
        "alicloud:ecs/securityGroupRule:SecurityGroupRule",
        lambda p: p.update(policy="accept"),
        name="control-plane-to-nothing-else",
    ),
    Mutant(
        "aws-cluster-audit-cloud-calls",
        "aws-prod",
        "aws:cloudtrail/trail:Trail",
        lambda p: p.update(enableLogging=False),
    ),
    Mutant(
        "alicloud-cluster-audit-cloud-calls",
        "alicloud-prod",
        "alicloud:actiontrail/trail:Trail",
        lambda p: p.update(eventRw="Write"),
    ),
]

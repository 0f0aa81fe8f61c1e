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
        name="control-plane-to-rest",
    ),
    Mutant(
        "ccm-network-restrict-egress",
        "openstack-prod",
        "openstack:networking/secGroupRule:SecGroupRule",
        lambda p: p.update(protocol=None, portRangeMin=None, portRangeMax=None),
        name="control-plane-to-anywhere-tcp-443",
    ),
    Mutant(
        "ccm-network-restrict-egress",
        "openstack-prod",
        "openstack:networking/secGroup:SecGroup",
        lambda p: p.update(deleteDefaultRules=False),
        name="control-plane",
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

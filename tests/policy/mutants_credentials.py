"""Damages of production stacks that the rules about credentials and cloud configs find."""

from __future__ import annotations

import base64
from typing import Any

from tests.policy.mutants import DAEMON_SET, Mutant

_SERVICE = "kubernetes:core/v1:Service"
_SECRET = "kubernetes:core/v1:Secret"
_EXPIRES = "cloud-controller/credential-expires"


def _pod(properties: Any) -> Any:
    return properties["spec"]["template"]["spec"]


def _rewrite(properties: Any, old: str, new: str) -> None:
    """Change the text of the cloud config."""
    data = properties["data"].value
    text = base64.b64decode(data["cloud.conf"]).decode()
    assert old in text
    data["cloud.conf"] = base64.b64encode(text.replace(old, new).encode()).decode()


MUTANTS = [
    Mutant(
        "ccm-cloud-config-use-secret",
        "aws-staging",
        DAEMON_SET,
        lambda p: _pod(p).update(volumes=[{"name": "cloud-config", "configMap": {"name": "settings"}}]),
    ),
    Mutant(
        "object-avoid-credentials",
        "mycloud-ha",
        _SERVICE,
        lambda p: p["metadata"].setdefault("annotations", {}).update({"example.com/auth-token": "hUsh4Ever"}),
    ),
    Mutant(
        "workload-avoid-credentials",
        "alicloud-staging",
        DAEMON_SET,
        lambda p: _pod(p)["containers"][0]["args"].append("--token=hUsh4Ever"),
    ),
    Mutant(
        "ccm-avoid-access-key",
        "aws-prod",
        "kubernetes:apps/v1:Deployment",
        lambda p: _pod(p)["containers"][0]["env"].append(
            {"name": "AWS_ACCESS_KEY_ID", "valueFrom": {"secretKeyRef": {"name": "key", "key": "id"}}}
        ),
        name="cloud-controller-manager",
    ),
    Mutant("ccm-credential-set-expiry", "mycloud-prod", _SECRET, lambda p: p["metadata"]["annotations"].pop(_EXPIRES)),
    Mutant(
        "ccm-credential-set-expiry",
        "mycloud-ha",
        _SECRET,
        lambda p: p["metadata"]["annotations"].update({_EXPIRES: "2020-01-31"}),
    ),
    Mutant("ccm-cloud-config-valid", "mycloud-prod", _SECRET, lambda p: _rewrite(p, "cluster-id", "clusterid")),
    Mutant("ccm-cloud-config-valid", "openstack-prod", _SECRET, lambda p: _rewrite(p, "auth-url", "auth-ulr")),
    Mutant("ccm-cloud-config-valid", "aws-staging", _SECRET, lambda p: _rewrite(p, "VPC = vpc-", "VPC = ")),
    Mutant("ccm-use-internal-endpoints", "alicloud-staging", _SECRET, lambda p: _rewrite(p, '"vpc"', '"public"')),
    Mutant(
        "ccm-use-internal-endpoints",
        "aws-prod",
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        lambda p: p.update(privateDnsEnabled=False),
    ),
]

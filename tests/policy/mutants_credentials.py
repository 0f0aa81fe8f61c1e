"""Damages of production stacks that the rules about credentials and cloud configs find."""

from __future__ import annotations

from typing import Any

from tests.policy.mutants import DAEMON_SET, Mutant

_SERVICE = "kubernetes:core/v1:Service"


def _pod(properties: Any) -> Any:
    return properties["spec"]["template"]["spec"]


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
]

"""Damages of the production stacks that the rules about workloads guard against."""

from __future__ import annotations

from typing import Any

from tests.policy.mutants import DAEMON_SET, Mutant


def _pod(properties: Any) -> Any:
    return properties["spec"]["template"]["spec"]


def _container(properties: Any) -> Any:
    return _pod(properties)["containers"][0]


def _hide(properties: Any) -> None:
    """A CCM that only its flags and its ServiceAccount give away."""
    _container(properties).update(
        image="registry.example/tools:1.0.0", name="manager", command=["tini", "--", "/run.sh"]
    )
    _pod(properties).pop("tolerations")


def _useless(properties: Any) -> None:
    _container(properties)["livenessProbe"] = {"exec": {"command": ["sh", "-c", "curl localhost || true"]}}


def _by_file(properties: Any) -> None:
    _container(properties)["args"].remove("--leader-elect=true")
    _container(properties)["args"].append("--config=/etc/cloud/options.yaml")


def _moved(properties: Any) -> None:
    _container(properties)["image"] = "registry.local/cloud-controller:0.1.0-latest"


MUTANTS = [
    Mutant("ccm-workload-tolerate-uninitialized", "mycloud-ha", DAEMON_SET, _hide),
    Mutant(
        "ccm-config-elect-leader",
        "aws-staging",
        DAEMON_SET,
        _by_file,
        beside=Mutant(
            "",
            "",
            "kubernetes:core/v1:Secret",
            lambda p: p.update(stringData={"options.yaml": "leader-elect: false"}),
            name="-config",
        ),
    ),
    Mutant(
        "stack-render-objects",
        "aws-prod",
        "kubernetes:apps/v1:Deployment",
        lambda p: p.clear(),
        becomes="kubernetes:helm.sh/v3:Release",
        also=frozenset({"lb-service-depend-on-ccm"}),
    ),
    Mutant("ccm-workload-set-probes", "mycloud-ha", DAEMON_SET, _useless),
    Mutant("ccm-workload-pin-image", "mycloud-prod", DAEMON_SET, _moved),
    Mutant(
        "ccm-workload-set-resources",
        "mycloud-prod",
        DAEMON_SET,
        lambda p: _container(p)["resources"]["limits"].update(memory="0e3"),
    ),
    Mutant(
        "ccm-workload-run-as-non-root",
        "mycloud-prod",
        DAEMON_SET,
        lambda p: _pod(p)["securityContext"].update(runAsUser=0),
    ),
    Mutant(
        "ccm-workload-drop-capabilities",
        "mycloud-prod",
        DAEMON_SET,
        lambda p: _container(p)["securityContext"].pop("capabilities"),
    ),
    Mutant(
        "ccm-workload-set-seccomp",
        "aws-staging",
        DAEMON_SET,
        lambda p: _pod(p)["securityContext"].pop("seccompProfile"),
    ),
    Mutant(
        "ccm-workload-read-only-root",
        "mycloud-ha",
        DAEMON_SET,
        lambda p: _container(p)["securityContext"].update(readOnlyRootFilesystem=False),
    ),
    Mutant(
        "ccm-workload-log-to-output",
        "alicloud-staging",
        DAEMON_SET,
        lambda p: _container(p)["args"].append("--log-file=/var/log/ccm.log"),
    ),
]

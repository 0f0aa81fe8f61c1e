"""Rule: the cloud controller manager runs the image that was reviewed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from pulumi_policy import (
    EnforcementLevel,
    PolicyComplianceFramework,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
)

from policy.objects import ccm_schema, dig
from policy.unknowns import Problem
from policy.workloads import Container, check_workload, containers

_DIGEST = re.compile(r"[a-z0-9+._-]+:[0-9a-f]{32,}")
# Three numbers and whatever follows: v1.36.0, 2.9.1-provider.2. Two of them (v1.36) move with each patch.
_VERSION = re.compile(r"v?\d+\.\d+\.\d+")


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report containers, including init containers, whose image can change."""
    ccm_only = not args.get_config().get("allWorkloads")
    check_workload(args, report, _problems(args), ccm_only=ccm_only)


def _problems(args: ResourceValidationArgs) -> Iterator[Problem]:
    tags = tuple(args.get_config().get("tags") or ())
    for container in containers(args.props, init=True):
        yield partial(_problem, container, tags)


def _problem(container: Container, tags: Sequence[str]) -> str | None:
    spec = container()
    image = str(dig(spec, "image") or "")
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    if _DIGEST.fullmatch(digest) or _VERSION.match(tag) or any(re.fullmatch(each, tag) for each in tags):
        return None
    # Without the image itself: the program may have made it a secret, which is plain text here.
    what = "the image's tag is not a full version" if tag else "the image has neither a tag nor a digest"
    return f"container {dig(spec, 'name')}: {what}"


CCM_IMAGE_PINNED = ResourceValidationPolicy(
    name="ccm-workload-pin-image",
    description=(
        "Pin the images of a cloud controller manager by a digest or a full version. With a tag that moves (latest, "
        "main, v1, v1.36), a restart runs an image that was never reviewed, and machines run different ones."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=ccm_schema(
        tags={
            "type": "array",
            "items": {"type": "string", "format": "regex"},
            "default": [],
            "description": "Further tags that never move, as regular expressions that match the whole tag.",
        },
        allWorkloads={
            "type": "boolean",
            "default": False,
            "description": "Apply the rule to every DaemonSet, Deployment and StatefulSet, not only to the CCM.",
        },
    ),
    display_name="CCM image is pinned",
    severity=Severity.MEDIUM,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="11.1, 12.1",
        specification="The CCM's version fits the cluster's",
    ),
    tags=["supply-chain"],
    remediation_steps="Name the image by its digest (IMAGE@sha256:…), or by a full version (IMAGE:v1.36.0).",
    url="https://kubernetes.io/docs/concepts/containers/images/#image-names",
)

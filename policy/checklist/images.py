"""Rule: the cloud controller manager runs the image that was reviewed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from policy.objects import dig
from policy.programs import bare
from policy.rules import ADVISORY, MEDIUM, ResourceRule, setting
from policy.subjects import Subject
from policy.unknowns import Problem
from policy.workloads import IMAGES, WORKLOADS, Container, containers, of_ccm

_DIGEST = re.compile(r"[a-z0-9+._-]+:[0-9a-f]{32,}")
# Three numbers and whatever follows: v1.36.0, 2.9.1-provider.2. Two of them (v1.36) move with each patch.
_VERSION = re.compile(r"v?\d+\.\d+\.\d+")
# `1.2.3-latest` moves all the same, also with a machine's name behind it.
_MOVES = re.compile(r"[-_.](latest|main|master|head|stable|edge|dev|nightly|snapshot|canary|rolling|current)$", re.I)


def problems(subject: Subject) -> Iterator[Problem]:
    """Containers, including init containers, whose image can change."""
    if subject.config.get("allWorkloads") and subject.kind in WORKLOADS:
        yield from _of_containers(subject)
    else:
        yield from of_ccm(subject, _of_containers(subject))


def _of_containers(subject: Subject) -> Iterator[Problem]:
    tags = tuple(subject.config.get("tags") or ())
    for container in containers(subject, init=True):
        yield partial(_problem, container, tags, subject.is_patch)


def _problem(container: Container, tags: Sequence[str], is_patch: bool) -> str | None:
    spec = container()
    image = str(dig(spec, "image") or "")
    if is_patch and not image:
        return None
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    is_version = _VERSION.match(tag) and not _MOVES.search(bare(tag))
    if _DIGEST.fullmatch(digest) or is_version or any(re.fullmatch(each, tag) for each in tags):
        return None
    # Without the image itself: the program may have made it a secret, which is plain text here.
    what = "the image's tag is not a full version" if tag else "the image has neither a tag nor a digest"
    return f"container {dig(spec, 'name')}: {what}"


CCM_IMAGE_PINNED = ResourceRule(
    "ccm-workload-pin-image",
    problems,
    why=(
        "Pin the images of a cloud controller manager by a digest or a full version. With a tag that moves (latest, "
        "main, v1, v1.36), a restart runs an image that was never reviewed, and machines run different ones."
    ),
    level=ADVISORY,
    settings={
        "images": IMAGES,
        "tags": setting(
            "array",
            "Further tags that never move, as regular expressions that match the whole tag.",
            [],
            items={"type": "string", "format": "regex"},
        ),
        "allWorkloads": setting("boolean", "Apply the rule to every workload, not only to the CCM.", False),
    },
    title="CCM image is pinned",
    severity=MEDIUM,
    lines=["11.1.5"],
    sections="12.1",
    judges=(
        "Every container of the CCM's pods, including init containers, names its image by a digest or by a tag "
        "that is a full version (`v1.36.0`, `2.9.1-provider.2`). A missing tag, `latest`, `main`, `stable`, `v1`, "
        "`v1.36` and `1.2.3-latest` can move. The setting `tags` takes regular expressions for further tags that "
        "never move; `allWorkloads` applies the rule to every workload."
    ),
    tags=["supply-chain"],
    remedy="Name the image by its digest (IMAGE@sha256:…), or by a full version (IMAGE:v1.36.0).",
    url="https://kubernetes.io/docs/concepts/containers/images/#image-names",
)

"""Whose cloud controller manager a container runs, and in which version."""

from __future__ import annotations

import re
from dataclasses import dataclass

from policy import clouds
from policy.clouds.interface import CcmMatrix
from policy.command_lines import flag
from policy.objects import dig
from policy.workloads import Container

_MATRICES = {cloud.name: cloud.ccm for cloud in clouds.descriptors() if cloud.ccm}
_ANONYMOUS = re.compile(r"(.*/)?cloud-controller-manager")
"""A repository that does not say whose manager it has: the flag `--cloud-provider` does."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """Whose cloud controller manager a container runs, and its version: the image's tag, empty for a digest alone."""

    cloud: str
    tag: str
    matrix: CcmMatrix


def vendor(container: Container) -> Vendor | None:
    """Whose manager this is; None where it is no vendor's. Raises UnknownValueError."""
    spec = container()
    image = str(dig(spec, "image") or "").partition("@")[0]
    folders, slash, last = image.rpartition("/")
    bare, _, tag = last.partition(":")
    name = f"{folders}{slash}{bare}"
    for cloud, matrix in _MATRICES.items():
        if matrix.image.fullmatch(name):
            return Vendor(cloud, tag, matrix)
    if not _ANONYMOUS.fullmatch(name):
        return None
    provider = flag(spec, "--cloud-provider") or ""
    return next((Vendor(cloud, tag, each) for cloud, each in _MATRICES.items() if provider in each.providers), None)

"""The versions of Alibaba Cloud's own cloud controller manager and the Kubernetes versions that they support.

What a row does not name is unknown, which does not pass: `judge` reports it with the newest row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cloud_controller.clouds.common.versions import Verdict, minor

IMAGE = re.compile(r"(.*/)?cloud-controller-manager-(amd64|arm64)")
"""Its repository, in whichever of Alibaba Cloud's registries."""


@dataclass(frozen=True, slots=True)
class Release:
    """A row: the minor versions of Kubernetes that the release supports, and the month in which it came out."""

    oldest: int
    newest: int
    month: str


RELEASES = {
    "v2.12.4": Release(24, 32, "2025-12"),
    "v2.12.1": Release(24, 31, "2025-09"),
    "v2.11.2": Release(24, 30, "2025-06"),
    "v2.10.0": Release(24, 30, "2024-10"),
    "v2.9.1": Release(22, 29, "2024-05"),
}
"""Source: requirements 002, section 4.1, as of January 2026. Newest first."""
RECOMMENDED = {32: "v2.12", 31: "v2.12", 30: "v2.11", 29: "v2.10", 28: "v2.9"}
"""By Kubernetes' minor version. Source: requirements 002, section 12.1, as of January 2026."""
_NEWEST = max(release.newest for release in RELEASES.values())


def judge(ccm_version: str, kubernetes_version: str) -> Verdict:
    """Whether Alibaba's controller `ccm_version` (`v2.12.4`) goes with Kubernetes (`1.32`, `1.32.1-aliyun.1`)."""
    kubernetes = minor(kubernetes_version)
    if kubernetes is None:
        return Verdict("unknown", f"{kubernetes_version!r} is not a version such as 1.32")
    release = RELEASES.get(ccm_version)
    if release is None:
        # A patch version without a row of its own, of the recommended minor version.
        if kubernetes in RECOMMENDED and ccm_version.startswith(f"{RECOMMENDED[kubernetes]}."):
            return Verdict("fits")
        return Verdict("unknown", f"the matrix does not have {ccm_version}; {_newest_row()}")
    if release.oldest <= kubernetes <= release.newest:
        return Verdict("fits")
    if kubernetes > _NEWEST:
        return Verdict("unknown", f"the matrix does not have Kubernetes 1.{kubernetes}; {_newest_row()}")
    known = f"; the matrix has {RECOMMENDED[kubernetes]}.x for it" if kubernetes in RECOMMENDED else ""
    supported = f"1.{release.oldest} to 1.{release.newest}"
    return Verdict("wrong", f"{ccm_version} is for Kubernetes {supported}, not 1.{kubernetes}{known}")


def _newest_row() -> str:
    version, release = next(iter(RELEASES.items()))
    return (
        f"the newest known row is {version} ({release.month}) for Kubernetes 1.{release.oldest} to 1.{release.newest}"
    )

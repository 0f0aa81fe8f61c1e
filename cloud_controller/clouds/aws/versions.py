"""The versions of AWS's cloud controller manager for each version of Kubernetes (requirements 002, section 5.1).

AWS's controller follows Kubernetes' minor versions, with its own patch versions. Versions newer than the matrix's
last row are unknown, which does not pass: `judge` reports it with the row.
"""

from __future__ import annotations

import re

from cloud_controller.clouds.common.versions import Verdict, minor

IMAGE = "registry.k8s.io/provider-aws/cloud-controller-manager"
IMAGES = re.compile(r"(.*/)?(provider-aws/|aws-)cloud-controller-manager")
"""Its repository in any registry, by its last parts, and its former one."""
MATRIX = {
    "1.37": "v1.37.1",
    "1.36": "v1.36.2",
    "1.35": "v1.35.2",
    "1.34": "v1.34.3",
    "1.33": "v1.33.4",
    "1.32": "v1.32.8",
    "1.31": "v1.31.9",
    "1.30": "v1.30.10",
    "1.29": "v1.29.10",
    "1.28": "v1.28.11",
}
"""By Kubernetes' minor version: the controller's newest release that was found, on 2026-11-29.

1.28 to 1.35: the images that registry.k8s.io serves (kubernetes/k8s.io,
`registry.k8s.io/images/k8s-staging-provider-aws/images.yaml`, a copy that ends in spring 2026, so newer patches may
exist). 1.36 and 1.37: the Go module proxy (both tagged 2026-11-05); their images were not seen in such a list.
"""
NEWEST = max(MATRIX, key=lambda minor: int(minor.partition(".")[2]))


def judge(ccm_version: str, kubernetes_version: str) -> Verdict:
    """Whether AWS's controller `ccm_version` (`v1.36.1`) goes with Kubernetes (`1.36`, `v1.36.4`)."""
    ccm, kubernetes = minor(ccm_version), minor(kubernetes_version)
    if ccm is None or kubernetes is None:
        return Verdict(
            "unknown", f"{ccm_version if ccm is None else kubernetes_version!r} is not a version such as 1.36"
        )
    if ccm != kubernetes:
        row = MATRIX.get(f"1.{kubernetes}")
        known = f"; the matrix has {row} for it" if row else ""
        return Verdict("wrong", f"{ccm_version} is for Kubernetes 1.{ccm}, not 1.{kubernetes}{known}")
    if f"1.{kubernetes}" in MATRIX:
        return Verdict("fits")
    newest = f"the newest known row is Kubernetes {NEWEST} with {MATRIX[NEWEST]}"
    return Verdict("unknown", f"the matrix does not have Kubernetes 1.{kubernetes}; {newest}")

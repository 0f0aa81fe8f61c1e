"""The versions of Azure's and GCP's cloud controller managers, which follow Kubernetes' minor versions.

Azure's manager 1.32.x is for Kubernetes 1.32, GCP's 32.x.x for 1.32. A minor version without a row is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from cloud_controller.clouds.common.versions import Verdict, minor

AZURE: Final = {"1.32": "v1.32.11", "1.31": "v1.31.12", "1.30": "v1.30.13", "1.29": "v1.29.14", "1.28": "v1.28"}
"""By Kubernetes' minor version. Source: requirements 002, sections 6.1 and 12.1, as of January 2026."""
GCP: Final = {"1.32": "v32.0.0", "1.31": "v31.0.0", "1.30": "v30.0.0", "1.29": "v29", "1.28": "v28"}
"""Source: requirements 002, sections 7.1 and 12.1, as of January 2026."""


def judge_azure(ccm_version: str, kubernetes_version: str) -> Verdict:
    """Whether Azure's manager `v1.32.11` goes with a version of Kubernetes."""
    return _judge(AZURE, minor(ccm_version), ccm_version, kubernetes_version)


def judge_gcp(ccm_version: str, kubernetes_version: str) -> Verdict:
    """Whether GCP's manager `v32.0.0` goes with a version of Kubernetes."""
    major = re.fullmatch(r"v?(\d+)\.\d+\.\d+.*", ccm_version)
    return _judge(GCP, int(major[1]) if major else None, ccm_version, kubernetes_version)


def _judge(matrix: Mapping[str, str], ccm: int | None, ccm_version: str, kubernetes_version: str) -> Verdict:
    kubernetes = minor(kubernetes_version)
    if ccm is None or kubernetes is None:
        return Verdict("unknown", f"{ccm_version if ccm is None else kubernetes_version!r} is not a version")
    if ccm != kubernetes:
        return Verdict("wrong", f"{ccm_version} is for Kubernetes 1.{ccm}, not 1.{kubernetes}")
    if f"1.{kubernetes}" in matrix:
        return Verdict("fits")
    newest, row = next(iter(matrix.items()))
    return Verdict(
        "unknown",
        f"the matrix does not have Kubernetes 1.{kubernetes}; the newest known row is Kubernetes {newest} with {row}",
    )

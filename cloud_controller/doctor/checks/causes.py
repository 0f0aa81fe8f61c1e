"""Names of the checks whose findings explain those of many others."""

from __future__ import annotations

from typing import Final

CCM_DOWN: Final = frozenset(
    {
        "api-server",
        "cloud-config",
        "cloud-api",
        "cloud-rights",
        "kubernetes-rights",
        "egress",
        "ccm-pods",
        "daemon-health",
        "leader",
    }
)
"""With a finding of these, the CCM may do nothing at all."""

NONE: Final[frozenset[str]] = frozenset()
"""Of a finding that nothing else explains."""

"""From which range nodes get their pod ranges, and whether a cloud controller manager routes these."""

from __future__ import annotations

from typing import Final

from policy.command_lines import flag
from policy.kubernetes_flags import CONTROLLER_MANAGER, Found
from policy.workloads import Container

FALSE: Final = frozenset({"0", "f", "false"})
"""What Go's parser of booleans takes for false."""
_ROUTE: Final = frozenset({"route", "node-route-controller", "cloud-route"})


def allocated(found: Found) -> str | None:
    """The cluster CIDR from which kube-controller-manager allocates by this text. Raises UnknownValueError."""
    flags = found()
    return flags.value(CONTROLLER_MANAGER, "cluster-cidr") or flags.anywhere("podSubnet")


def routes_pods(container: Container) -> bool:
    """Whether the CCM in this container runs the route controller. Raises UnknownValueError."""
    spec = container()
    if (flag(spec, "--configure-cloud-routes") or "").lower() in FALSE:
        return False
    names = [each.strip() for each in (flag(spec, "--controllers") or "*").split(",")]
    return not any(each.removeprefix("-") in _ROUTE for each in names if each.startswith("-")) and (
        "*" in names or bool(_ROUTE & {*names})
    )

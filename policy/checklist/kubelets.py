"""Rule: kubelets leave the initialisation of their nodes to the cloud controller manager."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from policy.infrastructure import require_own_control_plane
from policy.kubernetes_flags import KUBELET, UNKNOWN_TEXTS, Flags, Found, flags_of
from policy.rules import HIGH, MANDATORY, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem

_CONFIGURED: Final = frozenset(
    {"InitConfiguration", "JoinConfiguration", "KUBELET_EXTRA_ARGS", "KUBELET_KUBEADM_ARGS", "nodeRegistration"}
)
_STARTED: Final = re.compile(r"\bkubelet[ \t]+--[a-z]|\bkubeadm[ \t]+(?:init|join)\b(?!.*--config)")


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Kubelets that do not run with `--cloud-provider=external`."""
    require_own_control_plane(stack)
    for subject, found in flags_of(stack):
        yield subject, partial(_problem, found)


def _problem(found: Found) -> str | None:
    flags = found()
    if flags.has("KubeletConfiguration", "cloudProvider"):
        return (
            f"{flags.where}: KubeletConfiguration has no field cloudProvider; give kubelets --cloud-provider=external"
        )
    if flags.has(KUBELET, "cloud-provider"):
        wrong = flags.value(KUBELET, "cloud-provider") not in ("external", None)
        return f"{flags.where}: --cloud-provider of the kubelet must be external" if wrong else None
    if not _is_configured(flags):
        return None
    return f"{flags.where}: the kubelet lacks --cloud-provider=external, so the CCM never initialises its node"


def _is_configured(flags: Flags) -> bool:
    """Whether kubelets start with these flags; packages and units that are only mentioned do not count."""
    return bool(flags.headings & _CONFIGURED or _STARTED.search(flags.text))


KUBELETS_ARE_EXTERNAL = StackRule(
    "kubelet-use-external-cloud",
    problems,
    why=(
        "Kubelets run with --cloud-provider=external: they register their nodes with the taint that the CCM removes "
        "once it has initialised them. Without it, nodes get neither provider ID nor addresses and zones of the cloud, "
        "and load balancers never send them traffic."
    ),
    level=MANDATORY,
    title="Kubelets leave their nodes to the CCM",
    severity=HIGH,
    lines=["11.1.10"],
    sections="8.3",
    judges=(
        "Texts in user data, ConfigMaps and Secrets by which a kubelet starts (kubeadm's `InitConfiguration` and "
        "`JoinConfiguration`, `KUBELET_EXTRA_ARGS`, a `kubelet` with flags, `kubeadm init` or `join` without "
        "`--config`) give it `--cloud-provider=external`. It is a flag: `KubeletConfiguration` has no field for it. "
        "The rule skips a stack whose control plane a cloud runs."
    ),
    unseen=(
        "Machines whose kubelet is configured by their image, by a file that they download, or by a machine template "
        "of another cluster (Cluster API); several kubelets in one text, of which one has the flag." + UNKNOWN_TEXTS
    ),
    tags=["nodes"],
    remedy=(
        "Set cloud-provider=external in nodeRegistration.kubeletExtraArgs of kubeadm's InitConfiguration and "
        "JoinConfiguration, or in KUBELET_EXTRA_ARGS."
    ),
    url="https://kubernetes.io/docs/tasks/administer-cluster/running-cloud-controller/",
)

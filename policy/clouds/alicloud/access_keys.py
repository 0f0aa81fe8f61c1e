"""Rule: no long-lived access key where pods can take roles, as on ACK (RRSA)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from policy.objects import dig, each
from policy.rules import ADVISORY, HIGH, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem, first_known
from policy.workloads import WORKLOADS, Container, containers, of_ccm

_CLUSTER = "alicloud:cs/managedKubernetes:ManagedKubernetes"
_KEY = "alicloud:ram/accessKey:AccessKey"
_VARIABLES = frozenset(
    {"ACCESS_KEY_ID", "ACCESS_KEY_SECRET", "ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET"}
)
"""By which Alibaba Cloud's own controller and its SDKs take an access key."""


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Access keys of RAM users, and cloud controller managers that get one, in a stack with an ACK cluster."""
    if not stack.of(_CLUSTER):
        stack.not_applicable("the stack has no ACK cluster: elsewhere pods cannot take RAM roles")
    for key in stack.of(_KEY):
        yield key, lambda: "a RAM user's access key does not expire; on ACK, pods take RAM roles (RRSA)"
    for workload in stack.of(*WORKLOADS):
        for problem in of_ccm(workload, [partial(_problem, workload)]):
            yield workload, problem


def _problem(subject: Subject) -> str | None:
    found = first_known(partial(_variable, container) for container in containers(subject))
    return f"the container gets an access key by {found}; on ACK, pods take RAM roles (RRSA)" if found else None


def _variable(container: Container) -> str | None:
    names = [str(dig(variable(), "name")) for variable in each(dig(container(), "env"))]
    return next((name for name in names if name in _VARIABLES), None)


NO_ACCESS_KEYS_ON_ACK = StackRule(
    "ack-ccm-avoid-access-key",
    problems,
    why=(
        "On ACK a ServiceAccount can take a RAM role (RRSA), whose keys last an hour. An access key of a RAM user "
        "lasts until somebody deletes it, wherever it has leaked to: the stack must not make one, nor give the CCM one."
    ),
    level=ADVISORY,
    title="No access keys on ACK",
    severity=HIGH,
    lines=["11.3.1"],
    sections="4.6.2",
    judges=(
        "A stack with an ACK cluster makes no access key of a RAM user, and its CCM gets none by an environment "
        "variable: pods of ACK can take RAM roles (RRSA). Keys in cloud configs are "
        "`ccm-cloud-config-use-secret`'s."
    ),
    tags=["alicloud", "ram"],
    remedy=(
        "Set enableRrsa on the cluster, make a RAM role that trusts its OIDC provider and the CCM's ServiceAccount "
        "(components/clouds/alicloud/ram.py), and remove the key."
    ),
    url="https://www.alibabacloud.com/help/en/ack/ack-managed-and-ack-dedicated/user-guide/use-rrsa-to-authorize-pods-to-access-different-cloud-services",
)

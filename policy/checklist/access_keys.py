"""Rule: no key that lasts until somebody deletes it, where a cloud controller manager can take a role."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from policy import clouds
from policy.cloud_configs import ccms_reading, known_entries
from policy.clouds.interface import Roles
from policy.credentials import is_credential, plain
from policy.objects import dig, each
from policy.rules import ADVISORY, HIGH, Stack, StackRule
from policy.subjects import SECRET, Subject
from policy.texts import settings
from policy.unknowns import Problem, first_known, if_known
from policy.workloads import IMAGES, WORKLOADS, Container, containers, of_ccm

_WHERE = {kind: cloud.roles for cloud in clouds.descriptors() if cloud.roles for kind in cloud.roles.where}


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Such keys, the CCMs that get one by a variable, and the Secrets from which CCMs read one."""
    kind = next((kind for kind in _WHERE if stack.of(kind)), None)
    if kind is None:
        stack.not_applicable("the stack has no resource that shows that a CCM can take a role")
    else:
        roles = _WHERE[kind]
        how = roles.where[kind]
        for key in stack.of(*roles.keys):
            yield key, partial(str, f"an access key does not expire, wherever it has leaked to; {how}")
        for workload in stack.of(*WORKLOADS):
            for problem in of_ccm(workload, [partial(_in_workload, workload, roles, how)]):
                yield workload, problem
        for secret in stack.of(SECRET):
            yield secret, partial(_in_secret, stack, secret, roles, how)


def _in_workload(subject: Subject, roles: Roles, how: str) -> str | None:
    found = first_known(partial(_variable, container, roles) for container in containers(subject))
    return f"the container gets an access key by {found}; {how}" if found else None


def _variable(container: Container, roles: Roles) -> str | None:
    names = [str(dig(variable(), "name")) for variable in each(dig(container(), "env"))]
    return next((name for name in names if plain(name) in roles.names), None)


def _in_secret(stack: Stack, secret: Subject, roles: Roles, how: str) -> str | None:
    for key, text in known_entries(secret):
        # A text that depends on what is yet to be made is judged in the update.
        for name, value in settings(key, if_known(text) or ""):
            if plain(name) in roles.names and is_credential(name, value) and any(ccms_reading(stack, secret)):
                return f"the CCM reads an access key from entry {key}; {how}"
    return None


NO_ACCESS_KEYS = StackRule(
    "ccm-avoid-access-key",
    problems,
    why=(
        "Where a CCM can take a role of the cloud, its keys last an hour. An access key of a user lasts until somebody "
        "deletes it, wherever it has leaked to: the stack must not make one, nor give the CCM one."
    ),
    level=ADVISORY,
    settings={"images": IMAGES},
    title="No access keys where there are roles",
    severity=HIGH,
    lines=["11.3.1"],
    sections="4.6.2, 5.1",
    judges=(
        "A stack whose CCM can take a role, because it has a managed cluster whose pods take roles or machines that "
        "have them, makes no access key of a user, and its CCM gets none: by a variable, also from a Secret's entry of "
        "that name, or by a file in a Secret of the stack (a cloud config, a file of credentials). A Secret's text "
        "that is unknown in a preview is judged in the update. Where the cloud has no roles for a CCM, "
        "`ccm-credential-set-expiry` holds instead."
    ),
    unseen="Keys in a Secret that another program makes, and those in files of the machine.",
    tags=["credentials", "iam", "ram"],
    remedy=(
        "On a managed cluster, make a role that trusts the cluster's OIDC provider and the CCM's ServiceAccount, as "
        "components/clouds do; give machines of your own a role. Then delete the key."
    ),
    url="https://kubernetes.io/docs/concepts/security/service-accounts/#use-cases",
)

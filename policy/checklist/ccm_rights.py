"""Rules: the cloud controller manager's ServiceAccount has the rights that its controllers need, and no more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import partial

from policy.ccm_needs import Needs, needs
from policy.objects import dig
from policy.rbac_rights import ALL, SERVICE_ACCOUNT, Granted, Right, granted
from policy.rules import ADVISORY, HIGH, MANDATORY, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem, first_known, known
from policy.workloads import IMAGES, WORKLOADS, ccm_container, service_account

_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")

_Judge = Callable[[Stack, str, Granted, Needs, Subject], str | None]


def problems(stack: Stack, judge: _Judge) -> Iterator[tuple[Subject, Problem]]:
    """What each cloud controller manager's ServiceAccount has too much, or lacks."""
    workloads = stack.of(*WORKLOADS)
    found, unknown = known(partial(ccm_container, workload) for workload in workloads)
    if not found and unknown is None:
        stack.not_applicable("no cloud controller manager in this stack: its rights are defined elsewhere")
    for workload in workloads:
        yield workload, partial(_problem, stack, judge, workload)


def _problem(stack: Stack, judge: _Judge, workload: Subject) -> str | None:
    needed = needs(workload)
    if needed is None:
        return None
    namespace, account = workload.namespace, service_account(workload)
    given = granted(stack, workload.cluster, namespace, account)
    said = judge(stack, f"{namespace}/{account}", given, needed, workload)
    return f"ServiceAccount {namespace}/{account} {said}" if said else None


def excess(_stack: Stack, _account: str, given: Granted, needed: Needs, _workload: Subject) -> str | None:
    """What it has too much."""
    too_much = {right for right in given.rights if needed.is_excess(right)}
    wider: dict[str, set[Right]] = defaultdict(set)
    for right in too_much:
        for need in needed.required:
            if _widens(right, need):
                wider[_where(need)].add(right)
    said = []
    if unneeded := too_much.difference(*wider.values()):
        said.append(f"may {' and '.join(_described(unneeded))}, which {_nobody(needed)}")
    said += [
        f"may {' and '.join(_described(rights))}, of which it needs only {part}"
        for part, rights in sorted(wider.items())
    ]
    if said:
        return "; ".join(said)
    if given.open is not None:
        raise given.open
    return None


def missing(stack: Stack, account: str, given: Granted, needed: Needs, workload: Subject) -> str | None:
    """What it lacks, where the stack makes it: elsewhere, others bind it."""
    lacking = {
        right: by for right, by in needed.required.items() if not any(each.covers(right) for each in given.rights)
    }
    made = (partial(_is_account, each, account, workload) for each in stack.of(SERVICE_ACCOUNT))
    if not lacking or not first_known(made):
        return None
    if given.open is not None:
        raise given.open
    if not given.bound:
        return f"is bound to no role, and lacks all that its controllers need ({', '.join(needed.controllers)})"
    by_controllers: dict[tuple[str, ...], set[Right]] = defaultdict(set)
    for right, by in lacking.items():
        by_controllers[by].add(right)
    return "; ".join(
        f"lacks {' and '.join(_described(of, ' of'))}, which {_who(by)}" for by, of in sorted(by_controllers.items())
    )


def _is_account(found: Subject, account: str, workload: Subject) -> bool:
    name, namespace = dig(found.props, "metadata", "name"), found.namespace
    return not found.is_patch and found.cluster == workload.cluster and f"{namespace}/{name}" == account


def _widens(right: Right, need: Right) -> bool:
    """Whether the right is the needed one, for more objects."""
    return right.covers(need) and (right.group, right.resource, right.verb) == (need.group, need.resource, need.verb)


def _described(rights: Collection[Right], of: str = "") -> list[str]:
    """`get, list nodes`, or with ` of`: `get, list of nodes`; one text for each resource."""
    verbs: dict[tuple[str, str], set[str]] = defaultdict(set)
    for right in rights:
        resource = "everything" if right.resource == ALL else right.resource
        group = " of every API group" if right.group == ALL else f".{right.group}" if right.group else ""
        verbs[f"{resource}{group}", _scope(right)].add(right.verb)
    return [
        f"{'do everything with' if ALL in found else ', '.join(_ordered(found)) + of} {resource}{scope}"
        for (resource, scope), found in sorted(verbs.items())
    ]


def _scope(right: Right) -> str:
    name = f" {right.name}" if right.name else ""
    return f"{name} in {right.namespace}" if right.namespace else name


def _where(need: Right) -> str:
    return _scope(need).strip() if need.name else f"those in {need.namespace}"


def _ordered(verbs: Collection[str]) -> list[str]:
    return sorted(verbs, key=lambda verb: (_VERBS.index(verb) if verb in _VERBS else len(_VERBS), verb))


def _nobody(needed: Needs) -> str:
    if not needed.controllers:
        return "no cloud controller manager needs"
    return f"no enabled controller needs (controllers: {', '.join(needed.controllers)})"


def _who(by: tuple[str, ...]) -> str:
    if not by:
        return "every controller needs"
    return f"controller {by[0]} needs" if len(by) == 1 else f"controllers {', '.join(by)} need"


_UNSEEN = (
    "Roles and bindings that are made elsewhere (in a chart, or by hand): a binding to such a role is not evaluated. "
    "Flags in a `--config` file (not evaluated). Flags other than `--controllers` in words that a preview does not "
    "know. What vendors' controllers call beside upstream's framework."
)
_URL = "https://kubernetes.io/docs/concepts/architecture/cloud-controller/#authorization"

CCM_HAS_RIGHTS = StackRule(
    "ccm-rbac-grant-needs",
    partial(problems, judge=missing),
    why=(
        "The cloud controller manager's ServiceAccount must have every right that its enabled controllers need. "
        "Without one of them a controller fails at each attempt: nodes stay uninitialised, Services without address."
    ),
    level=MANDATORY,
    settings={"images": IMAGES},
    title="The CCM has the rights that it needs",
    severity=HIGH,
    lines=["11.1.6"],
    sections="8.2",
    judges=(
        "Where the stack makes the CCM's workload and its ServiceAccount, the account's bindings lead to roles with "
        "every right that the controllers of `--controllers` need, verb by verb: for this project's CCM those of "
        "`cloud_controller/rbac.py`, which depend on its other flags too, for a vendor's of upstream's framework "
        "(`--cloud-provider`) those of `policy/upstream_rights.py`, which gives their date and source. Bindings count "
        "by account, user name and group; aggregated roles as the roles of the stack that they select; `resourceNames` "
        "only for that object, and never for `create`. A CCM with `--kubeconfig` acts as somebody else and passes; one "
        "with `--dry-run` only needs to read."
    ),
    unseen=_UNSEEN,
    tags=["rbac"],
    remedy=(
        "Add the verbs to the role, bind the role to the ServiceAccount, or run fewer controllers. For this project's "
        "CCM, `cloud-controller manifests` prints the roles for a list of controllers."
    ),
    url=_URL,
)

CCM_RIGHTS_ARE_NARROW = StackRule(
    "ccm-rbac-avoid-excess",
    partial(problems, judge=excess),
    why=(
        "The cloud controller manager's ServiceAccount must have no right that its enabled controllers do not need. "
        "Whoever takes over the manager has all of them: with secrets, pods or roles, the whole cluster."
    ),
    level=ADVISORY,
    settings={"images": IMAGES},
    title="The CCM has no rights beyond its needs",
    severity=HIGH,
    lines=["11.1.6", "11.3.3"],
    sections="8.2",
    judges=(
        "No right of the CCM's ServiceAccount goes beyond what `ccm-rbac-grant-needs` demands, verb by verb, for this "
        "project's CCM. Of a vendor's, whose needs are not known to the last verb: no wildcard, nothing that leads "
        "to more rights or credentials (`policy/powers.py`: Secrets without names, tokens, pods and workloads, exec, "
        "roles, `escalate`, `bind`, `impersonate`), and no changes that only a disabled controller makes, such as "
        "`delete` of nodes. Tokens of ServiceAccounts are allowed with `--use-service-account-credentials`."
    ),
    unseen=_UNSEEN,
    tags=["rbac"],
    remedy=(
        "Remove the verbs from the role, narrow them down with `resourceNames` or a Role in one namespace, or give the "
        "other program a ServiceAccount of its own. For this project's CCM, `cloud-controller manifests` prints the "
        "roles for a list of controllers."
    ),
    url=_URL,
)

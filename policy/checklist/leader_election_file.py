"""Rule: the file of options that a cloud controller manager reads does not turn leader election off.

A stack rule: the file is in a ConfigMap or a Secret, and whether several managers read it is in the workload.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from functools import partial

import yaml

from policy.checklist.leader_election import FALSE, FLAG, why_several
from policy.command_lines import flag
from policy.objects import dig
from policy.references import Reference, of_file
from policy.rules import CRITICAL, MANDATORY, Stack, StackRule
from policy.subjects import CONFIG_MAP, SECRET, Subject
from policy.unknowns import Problem, problem_if
from policy.workloads import DAEMONS, IMAGES, Container, containers, is_ccm, pod

_OPTIONS = "--config"
_PLACES = (("leader-elect",), ("leaderElection", "leaderElect"), ("generic", "leaderElection", "leaderElect"))
"""Where a file has it: our daemon's, and Kubernetes' configuration types."""


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """CCMs that run without the lease by their file of options, although another one can run beside them."""
    files = stack.of(CONFIG_MAP, SECRET)
    for workload in stack.of(*DAEMONS):
        for container in containers(workload):
            yield (
                workload,
                partial(
                    problem_if,
                    [partial(is_ccm, workload, container), partial(why_several, workload)],
                    partial(_problem, workload, container, files),
                ),
            )


def _problem(workload: Subject, container: Container, files: list[Subject]) -> str | None:
    spec = container()
    # The command line wins.
    path = flag(spec, _OPTIONS) if flag(spec, FLAG) is None else None
    if not path:
        return None
    for source in of_file(pod(workload), spec, path):
        for file in files:
            if _is_source(file, source, workload) and _is_off(_text(file, source.key or "")):
                kind = file.kind.rpartition("/")[2]
                return (
                    f"container {dig(spec, 'name')}: {kind} {source.name} turns leader election off ({source.key}), "
                    f"but {why_several(workload)}"
                )
    return None


def _is_source(file: Subject, source: Reference, workload: Subject) -> bool:
    there = (file.kind, dig(file.props, "metadata", "name"), file.namespace, file.cluster)
    return there == (source.kind, source.name, workload.namespace, workload.cluster)


def _text(file: Subject, key: str) -> str:
    found = dig(file.props, "stringData", key)
    if found is None:
        found = dig(file.props, "data", key)
        if file.kind == SECRET and found is not None:
            try:
                return base64.b64decode(str(found)).decode(errors="replace")
            except binascii.Error:
                return ""
    return str(found or "")


def _is_off(text: str) -> bool:
    try:
        options = yaml.safe_load(text)
    except yaml.YAMLError:
        return False
    return any(str(dig(options, *place)).lower() in FALSE for place in _PLACES)


CCM_FILE_ELECTS_LEADER = StackRule(
    "ccm-config-elect-leader",
    problems,
    why=(
        "Cloud controller managers that run side by side must elect a leader, whether a flag or a file sets their "
        "options. Without the lease each of them creates load balancers and routes, and they undo each other's work."
    ),
    level=MANDATORY,
    settings={"images": IMAGES},
    title="The CCM's file of options elects a leader",
    severity=CRITICAL,
    lines=["11.1.8"],
    sections="8.1",
    judges=(
        "Where a CCM that may run more than once (see `ccm-workload-elect-leader`) reads `--config FILE`, and the file "
        "is a ConfigMap or a Secret of the stack, it does not turn leader election off: `leader-elect: false` in our "
        "daemon's file, `leaderElection.leaderElect: false` in a Kubernetes configuration. A flag `--leader-elect` "
        "wins over the file."
    ),
    unseen="A file that is in the image, on the machine, or in an object that the stack does not make.",
    tags=["availability"],
    remedy=(
        "Remove the option from the file, or set it to true (and let the ServiceAccount get, create and update leases)."
    ),
    url="https://kubernetes.io/docs/concepts/architecture/leases/",
)

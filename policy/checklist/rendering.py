"""Rule: the program renders the objects that it creates, so that the other rules see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from policy.objects import dig
from policy.rules import ADVISORY, HIGH, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem, first_known

_IN_CLUSTER = {
    "helm.sh/Release": "Helm",
    "helm.cattle.io/HelmChart": "the Helm controller",
    "helm.toolkit.fluxcd.io/HelmRelease": "Flux",
    "kustomize.toolkit.fluxcd.io/Kustomization": "Flux",
    "argoproj.io/Application": "Argo CD",
    "argoproj.io/ApplicationSet": "Argo CD",
    "pulumi.com/Stack": "Pulumi's operator",
}
"""Kinds of objects of which something else makes others, and what that is."""
_COMPONENTS = ("helm.sh/Chart", "kustomize/Directory", "yaml/ConfigFile", "yaml/ConfigGroup")
"""They render in the program; but nothing in a preview in which an input is unknown."""
_COMMANDS = ("command:local:Command", "command:remote:Command")
_CREATES = re.compile(
    r"\b(kubectl|oc)\b.*\b(apply|create|edit|patch|replace|run|set)\b|\bhelm\b.*\b(install|upgrade)\b", re.S
)


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """What creates objects that are not among the stack's resources."""
    parents = {each.resource.parent.urn for each in stack.subjects if each.resource and each.resource.parent}
    for subject in stack.subjects:
        if subject.kind in _IN_CLUSTER:
            yield subject, partial(_unseen, f"{_IN_CLUSTER[subject.kind]} renders its objects outside of the program")
        elif subject.kind in _COMPONENTS and subject.urn not in parents:
            yield subject, partial(_unseen, "it rendered no objects, as in a preview with an unknown input")
        elif subject.kind in _COMMANDS:
            yield subject, partial(_by_command, subject)


def _by_command(subject: Subject) -> str | None:
    texts = (partial(_creating, subject, field) for field in ("create", "update"))
    return _unseen("its command creates objects outside of the program") if first_known(texts) else None


def _creating(subject: Subject, field: str) -> bool:
    return bool(_CREATES.search(str(dig(subject.props, field) or "")))


def _unseen(why: str) -> str:
    return f"not evaluated: {why}, so no rule has judged them"


STACK_RENDERS_OBJECTS = StackRule(
    "stack-render-objects",
    problems,
    why=(
        "Render Kubernetes objects in the program. What a Helm release, a controller in the cluster or a command "
        "creates is not among the stack's resources: no rule judges it, which looks as if it passed."
    ),
    level=ADVISORY,
    reports_good=(
        "commands that create nothing (`kubectl config set-context`, `kubectl wait` before a test), and groups that "
        "are empty because a condition is false"
    ),
    title="The program renders its objects",
    severity=HIGH,
    sections="8.1, 8.2",
    judges=(
        "The stack has no `kubernetes.helm.v3.Release`, no objects from which Flux, Argo CD, the Helm controller or "
        "Pulumi's operator create others, and no `command.local.Command` or `command.remote.Command` that runs "
        "`kubectl apply` or `helm install`. A component that renders in the program (`helm.v4.Chart`, "
        "`yaml.v2.ConfigGroup`, `kustomize.v2.Directory` and their predecessors) has at least one object: where one of "
        "its inputs is unknown, a preview renders none, and only the update shows them."
    ),
    unseen=(
        "Scripts that create objects, other operators, dynamic providers, and the add-ons of a managed cluster, which "
        "the cloud maintains."
    ),
    tags=["coverage"],
    remedy=(
        "Replace the release by kubernetes.helm.v4.Chart, or render it with `helm template` into a file that a "
        "kubernetes.yaml.v2.ConfigGroup reads; manifests of commands and controllers become a ConfigGroup, too. If it "
        "has nothing to do with the cloud controller manager, its rights, its credentials or LoadBalancer Services, "
        "exempt it and say so."
    ),
    url="https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/"
    "choosing-the-right-helm-resource-for-your-use-case/",
)

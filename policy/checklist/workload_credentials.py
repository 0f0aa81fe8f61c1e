"""Rule: no pod gets a credential in clear, by its environment, its command line or an annotation."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from policy.credentials import by_form, credentials, in_words, is_name
from policy.objects import dig, each
from policy.rules import ADVISORY, HIGH, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, every_known, if_known
from policy.workloads import Container

_TEMPLATE = ("spec", "template", "spec")
_PODS = {
    **dict.fromkeys(("apps/DaemonSet", "apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet"), _TEMPLATE),
    **dict.fromkeys(("batch/Job", "core/ReplicationController"), _TEMPLATE),
    "batch/CronJob": ("spec", "jobTemplate", *_TEMPLATE),
    "core/Pod": ("spec",),
    "core/PodTemplate": ("template", "spec"),
}
"""Where objects of these kinds have the spec of their pods."""


def problems(subject: Subject) -> Iterator[Problem]:
    """Variables and words of command lines that hold credentials."""
    path = _PODS.get(subject.kind)
    if path is None:
        return
    spec = dig(subject.props, *path)
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in each(dig(spec, field)):
            yield partial(_of_container, container, "env", _in_environment)
            yield partial(_of_container, container, "command and args", _in_command)


def _of_container(container: Container, what: str, look: Callable[[Mapping[str, Any]], list[str]]) -> str | None:
    spec = container()
    found = [*dict.fromkeys(look(spec))]
    # The keys' names only: a message must never show credentials.
    where = f"container {dig(spec, 'name')}: {what}"
    return f"{where}: credentials in clear ({', '.join(found)})" if found else None


def _in_environment(spec: Mapping[str, Any]) -> list[str]:
    by_variable = every_known(partial(_of_variable, variable) for variable in each(dig(spec, "env")))
    return [name for names in by_variable for name in names]


def _of_variable(variable: Callable[[], Any]) -> list[str]:
    known = variable()
    name = str(dig(known, "name"))
    if not is_name(name):
        # A credential's form shows in the update at the latest.
        value = if_known(partial(dig, known, "value"))
        return [f"{name}: {what}" for what in credentials(name, str(value or ""))]
    if dig(known, "valueFrom", "configMapKeyRef"):
        return [f"{name}, from a ConfigMap"]
    return credentials(name, str(dig(known, "value") or ""))


def _in_command(spec: Mapping[str, Any]) -> list[str]:
    words = [if_known(word) for field in ("command", "args") for word in each(dig(spec, field))]
    texts = [str(word or "") for word in words]
    # `curl -H "Authorization: Bearer X"` is one word, whose parts have no form.
    forms = (form for text in texts for form in by_form(text))
    return [*in_words(part for text in texts for part in _split(text)), *forms]


def _split(word: str) -> list[str]:
    """The words of a shell's command, as in `sh -c`; else the word."""
    if " " not in word.strip():
        return [word]
    try:
        return shlex.split(word, comments=True)
    except ValueError:
        return word.split()


NO_CREDENTIALS_IN_PODS = ResourceRule(
    "workload-avoid-credentials",
    problems,
    why=(
        "A pod's spec is no place for credentials: whoever may read pods reads them, and so do previews, the lists of "
        "processes on the node, and crash reports. A Secret that the pod mounts is read by that pod alone."
    ),
    level=ADVISORY,
    reports_good="scripts that read a credential into a variable, and names of keys and Secrets in variables and flags",
    title="No credentials in pods' specs",
    severity=HIGH,
    lines=["11.1.1"],
    sections="8.1, corrected",
    judges=(
        "No container of any pod (bare, or of a workload, a Job or a CronJob; init containers too) has a credential in "
        "clear in a variable, or in its command or arguments: `--access-key=X`, `--password X`, `PASSWORD=X`, also in "
        "the text of `sh -c`. What counts as a credential is the same as for `object-avoid-credentials`, which also "
        "judges the ConfigMap that `envFrom` names. A variable with a credential's name from a ConfigMap is reported, "
        "one from a Secret passes. Words and variables without a telling name whose value is unknown in a preview are "
        "judged in the update, which knows them."
    ),
    unseen=(
        "Credentials in short flags (`-pX`), under names that say nothing and without a form that tells, in scripts of "
        "hooks and probes, on the node (`hostPath`), and in a ConfigMap that another program makes."
    ),
    tags=["credentials"],
    remedy=(
        "Put the value into a Secret and take it from there: env with valueFrom.secretKeyRef, or a mounted file, which "
        "most programs accept by a flag such as --password-file. Replace the credential, which has been in clear."
    ),
    url="https://kubernetes.io/docs/concepts/security/secrets-good-practices/",
)

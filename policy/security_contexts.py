"""What the containers of a cloud controller manager's pods may do on their machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from policy.objects import dig
from policy.subjects import Subject
from policy.unknowns import Problem
from policy.workloads import Container, containers, of_ccm, pod

_CONTEXT = "securityContext"
_OF_POD = ("runAsNonRoot", "runAsUser", "seccompProfile")
"""The fields that a pod can set for its containers."""

Context = Callable[[str], Any]
"""A field of a container's security context; where it has none, its pod's. None where neither has it."""
Judgement = Callable[[Context, bool], str | None]
"""What is wrong with a container by its context, in words that follow its name. With True, what is missing is not."""


def of_contexts(subject: Subject, judgement: Judgement) -> Iterator[Problem]:
    """The judgement of every container of a CCM's pods, including init containers."""
    yield from of_ccm(subject, _of_containers(subject, judgement))


def _of_containers(subject: Subject, judgement: Judgement) -> Iterator[Problem]:
    for container in containers(subject, init=True):
        yield partial(_problem, container, pod(subject), judgement, subject.is_patch)


def _problem(container: Container, pod: Mapping[str, Any], judgement: Judgement, is_patch: bool) -> str | None:
    spec = container()
    found = judgement(partial(_field, spec, pod), is_patch)
    return f"container {dig(spec, 'name')} {found}" if found else None


def _field(container: Mapping[str, Any], pod: Mapping[str, Any], name: str) -> Any:
    own = dig(container, _CONTEXT, name)
    return dig(pod, _CONTEXT, name) if own is None and name in _OF_POD else own

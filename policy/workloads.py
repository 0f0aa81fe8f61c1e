"""Finds the cloud controller managers among workloads, their containers and their flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from policy.objects import dig, each
from policy.rules import setting
from policy.subjects import Subject
from policy.unknowns import Problem, collect, first_known, problem_if

WORKLOADS = ("apps/DaemonSet", "apps/Deployment", "apps/StatefulSet")

Container = Callable[[], Mapping[str, Any]]
"""A container of a pod; raises UnknownValueError."""

IMAGES = setting(
    "texts", "Further image repositories, by their last part, that are cloud controller managers.", default=[]
)
"""The setting `images` of a rule about cloud controller managers: it adds to those that it recognises."""

# The last part of an image's repository, or a command's: cloud-controller (this project's), and of others
# cloud-controller-manager, NAME-cloud-controller-manager, NAME-ccm, cloud-provider-NAME.
_CCM = re.compile(r"(^|[-_])(cloud-controller(-manager)?|ccm|cloud-provider-[a-z0-9]+)$")


def of_ccm(subject: Subject, problems: Iterable[Problem]) -> Iterator[Problem]:
    """These problems of a workload, where it is a cloud controller manager."""
    if subject.kind in WORKLOADS:
        for problem in collect(problems):
            yield partial(problem_if, [partial(ccm_container, subject)], problem)


def pod(subject: Subject) -> Mapping[str, Any]:
    """The spec of a workload's pods. Raises UnknownValueError."""
    return dig(subject.props, "spec", "template", "spec") or {}


def ccm_container(subject: Subject) -> str | None:
    """The name of the workload's container that is a cloud controller manager; None if it has none.

    Raises UnknownValueError if that depends on an unknown value.
    """
    return first_known(partial(ccm_name, container, subject.config) for container in containers(subject))


def ccm_name(container: Container, config: Mapping[str, Any]) -> str | None:
    """The name of a container that is a cloud controller manager, else None. Raises as `ccm_container`."""
    images = tuple(config.get("images") or ())
    return first_known(partial(_ccm_name, container, what, images) for what in ("image", "command"))


def containers(subject: Subject, *, init: bool = False) -> Iterator[Container]:
    """The containers of a workload's pods; with `init` those, too, that run before them."""
    for field in ("containers", "initContainers") if init else ("containers",):
        yield from each(dig(pod(subject), field))


def flag(container: Mapping[str, Any], name: str) -> str | None:
    """The last value of a command-line flag: `NAME=VALUE`, or the word after NAME; None: the flag is absent.

    Also inside a word, as in `sh -c`. Raises UnknownValueError only where a later, unknown word could be the flag.
    """
    following = ""
    for field in ("args", "command"):
        words = [*each(dig(container, field))]
        for word in reversed(words):
            for part in reversed(str(word()).split()):
                bare = part.strip("\"'")
                if bare == name:
                    return following
                if bare.startswith(f"{name}="):
                    return bare.partition("=")[2].strip("\"'")
                following = bare
    return None


def repository(image: str) -> str:
    """`cloud-controller` of `registry.example/a/cloud-controller:v1@sha256:…`."""
    last = image.partition("@")[0].rpartition("/")[2]
    return last.partition(":")[0]


def _ccm_name(container: Container, what: str, images: tuple[str, ...]) -> str | None:
    spec = container()
    if what == "image":
        program = repository(str(dig(spec, "image") or ""))
    else:
        program = next((str(word()) for word in each(dig(spec, "command"))), "").rpartition("/")[2]
    return str(dig(spec, "name") or program) if _CCM.search(program) or program in images else None

"""Finds the cloud controller managers among workloads and their containers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from policy.command_lines import command_line, dashed, flag, known_words
from policy.objects import dig, each
from policy.programs import bare, commands
from policy.rules import setting
from policy.subjects import Subject
from policy.unknowns import Problem, collect, first_known, if_known, known, problem_if

DAEMONS = (
    "apps/DaemonSet",
    "apps/Deployment",
    "apps/StatefulSet",
    "apps/ReplicaSet",
    "core/ReplicationController",
    "core/Pod",
)
"""The kinds that keep pods running."""
JOBS = ("batch/Job", "batch/CronJob")
WORKLOADS = (*DAEMONS, *JOBS)
"""Every kind that runs pods."""

Container = Callable[[], Mapping[str, Any]]
"""A container of a pod; raises UnknownValueError."""

IMAGES = setting(
    "texts", "Further image repositories, by their last part, that are cloud controller managers.", default=[]
)
"""The setting `images` of a rule about cloud controller managers: it adds to those that it recognises."""

LOOK_ALIKES = (
    "workloads that only their name or ServiceAccount makes look like a cloud controller manager (a web application "
    "called `ccm`, an exporter of a CCM's metrics)"
)
"""What rules about cloud controller managers report though they should not."""

# The last part of an image's repository, a program, or a ServiceAccount: cloud-controller (this project's), and of
# others cloud-controller-manager, NAME-cloud-controller-manager, NAME-ccm, cloud-provider-NAME.
_CCM = re.compile(r"(^|[-_])(cloud-controller(-manager)?|ccm|cloud-provider-[a-z0-9]+(-cloud|-metal)?)$")
# A container's name says less: `wait-for-ccm` and `restart-ccm` are others.
_NAME = re.compile(r"ccm|((?!check|delete|patch|restart|test|wait|watch)[a-z0-9]+-)?cloud-controller(-manager)?")
# They share flags with a CCM.
_OTHERS = re.compile(r"(^|-)(cluster-autoscaler|kube-apiserver|kube-controller-manager|kubelet|hyperkube)(-|$)")
_AUTOSCALER = frozenset({"--expander", "--node-group-auto-discovery", "--nodes", "--scale-down-enabled"})
_PROVIDER = "--cloud-provider"
_BESIDE_PROVIDER = frozenset(
    {
        "--allocate-node-cidrs",
        "--cloud-config",
        "--cluster-cidr",
        "--concurrent-node-syncs",
        "--concurrent-service-syncs",
        "--configure-cloud-routes",
        "--controllers",
        "--node-monitor-period",
        "--node-status-update-frequency",
        "--route-reconciliation-period",
        "--use-service-account-credentials",
    }
)
"""Flags that, beside `--cloud-provider`, make a program a CCM."""


def of_ccm(subject: Subject, problems: Iterable[Problem], kinds: Iterable[str] = WORKLOADS) -> Iterator[Problem]:
    """These problems of a workload of these kinds, where it is a cloud controller manager."""
    if subject.kind in kinds:
        for problem in collect(problems):
            yield partial(problem_if, [partial(ccm_container, subject)], problem)


def pod(subject: Subject) -> Mapping[str, Any]:
    """The spec of a workload's pods. Raises UnknownValueError."""
    return dig(_template(subject), "spec") or {}


def pod_labels(subject: Subject) -> Mapping[str, str]:
    """The labels of a workload's pods. Raises UnknownValueError."""
    return dig(_template(subject), "metadata", "labels") or {}


def service_account(subject: Subject) -> str:
    """The name of the ServiceAccount of a workload's pods. Raises UnknownValueError."""
    spec = pod(subject)
    # `serviceAccount` is the field's former name.
    return str(dig(spec, "serviceAccountName") or dig(spec, "serviceAccount") or "default")


def _template(subject: Subject) -> Any:
    path = {"core/Pod": (), "batch/CronJob": ("spec", "jobTemplate", "spec", "template")}
    return dig(subject.props, *path.get(subject.kind, ("spec", "template")))


def ccm_container(subject: Subject) -> str | None:
    """The name of the workload's container that is a cloud controller manager; None if it has none.

    Raises UnknownValueError if that depends on an unknown value.
    """
    return first_known(partial(is_ccm, subject, container) for container in containers(subject))


def is_ccm(subject: Subject, container: Container) -> str | None:
    """The container's name where it is a cloud controller manager, else None. Raises as `ccm_container`.

    By its image, program and flags; where the workload keeps running, also by its name and its pod's ServiceAccount.
    """
    found = [partial(ccm_name, container, subject.config)]
    if subject.kind in DAEMONS:
        found += [partial(_by_name, container), partial(_by_account, subject, container)]
    return first_known(found)


def ccm_name(container: Container, config: Mapping[str, Any]) -> str | None:
    """The name of a container that is a CCM by its image, program or flags, else None. Raises as `ccm_container`."""
    if if_known(partial(_is_doctor, container)):
        return None
    by_program = (partial(_by_program, container, programs, config) for programs in (_image, _programs))
    return first_known((*by_program, partial(_by_flags, container)))


def containers(subject: Subject, *, init: bool = False) -> Iterator[Container]:
    """The containers that run beside each other in a workload's pods; with `init` those, too, that run before them.

    An init container that never ends (`restartPolicy: Always`) is among the former.
    """
    yield from each(dig(pod(subject), "containers"))
    if init:
        yield from each(dig(pod(subject), "initContainers"))
        return
    for container in each(if_known(partial(dig, pod(subject), "initContainers"))):
        if if_known(partial(_never_ends, container)):
            yield container


def is_program(name: str, config: Mapping[str, Any]) -> bool:
    """Whether a program or an image's repository of this name is a CCM."""
    return bool(_CCM.search(name)) or name in (config.get("images") or ())


def repository(image: str) -> str:
    """`cloud-controller` of `registry.example/a/cloud-controller:v1@sha256:…`."""
    last = image.partition("@")[0].rpartition("/")[2]
    return last.partition(":")[0]


def _never_ends(container: Container) -> bool:
    return bool(dig(container(), "restartPolicy") == "Always")


def _by_program(
    container: Container, programs: Callable[[Mapping[str, Any]], Iterable[str]], config: Mapping[str, Any]
) -> str | None:
    spec = container()
    found = next((program for program in programs(spec) if is_program(program, config)), None)
    return found and str(dig(spec, "name") or found)


def _is_doctor(container: Container) -> bool:
    """Whether this project's image runs its command that examines CCMs."""
    spec = container()
    image = repository(str(dig(spec, "image") or ""))
    return image == "cloud-controller" and not dig(spec, "command") and known_words(spec, "args")[:1] == ["doctor"]


def _image(spec: Mapping[str, Any]) -> list[str]:
    return [bare(repository(str(dig(spec, "image") or "")))]


def _programs(spec: Mapping[str, Any]) -> list[str]:
    """The names of what the container runs. Raises UnknownValueError where the command's first word is unknown."""
    words = known_words(spec, "command")
    if not words and (command := [*each(dig(spec, "command"))]):
        command[0]()
    arguments = known_words(spec, "args")
    if words and (found := commands(words)):
        return [name for each in found for name in each.names]
    # The image's entry point may run what its first argument names, as a shell or an init program in `command` does.
    if not words and not (arguments and "/" in arguments[0]):
        return []
    return [name for each in commands([*words, *arguments]) for name in each.names]


def _by_flags(container: Container) -> str | None:
    """By flags that only a CCM has together. Raises UnknownValueError where `--cloud-provider` is one of them."""
    spec = container()
    found, unknown = known(command_line(spec))
    names = {dashed(word) for words in found for word in words}
    if _PROVIDER not in names or names & _AUTOSCALER or _is_other(spec):
        return None
    # With `external`, the program leaves the cloud to a CCM.
    if if_known(partial(flag, spec, _PROVIDER)) == "external":
        return None
    if names & _BESIDE_PROVIDER:
        return str(dig(spec, "name") or _PROVIDER)
    if unknown is not None:
        raise unknown
    return None


def _by_name(container: Container) -> str | None:
    name = str(dig(container(), "name") or "")
    return name if _NAME.fullmatch(name) and not _is_other(container()) else None


def _by_account(subject: Subject, container: Container) -> str | None:
    """By the ServiceAccount of the pod, whose first container it is, where no other is known to be a CCM."""
    if not _CCM.search(if_known(partial(service_account, subject)) or "") or _is_other(container()):
        return None
    every = [*each(dig(pod(subject), "containers"))]
    name = dig(container(), "name")
    if name != dig(every[0](), "name") or first_known(partial(ccm_name, other, subject.config) for other in every[1:]):
        return None
    return str(name or "")


def _is_other(spec: Mapping[str, Any]) -> bool:
    """Whether image, program or name is of another program with a CCM's flags."""
    programs = if_known(partial(_programs, spec)) or []
    known = (*(if_known(partial(_image, spec)) or []), *programs, str(dig(spec, "name") or ""))
    return any(_OTHERS.search(each) for each in known)
